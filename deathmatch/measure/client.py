"""Running the load generator of a trial, and telling its own failures from the server's."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from deathmatch.errors import Truncated, UserError
from deathmatch.hosts import clients, server_build
from deathmatch.measure.context import PORT, Context
from deathmatch.plan.root import ROOT

WARM_UP_RATE_RPS = 500


def warm_up(context: Context) -> None:
    """Offer a load whose report nobody keeps, for as long as server and dataset want."""
    rate_rps = context.spec.get("warm_up_rate_rps", WARM_UP_RATE_RPS)
    with tempfile.TemporaryDirectory(dir=context.out) as folder:
        offer(context, rate_rps, context.trial.warm_up_s, Path(folder, "warm-up.txt"))


def offer(context: Context, rate_rps: int, duration_s: float, log: Path) -> dict:
    """Offer one rate; return the client's command and its state, "exit N" or that it wedged.

    The report is in `log`, beside it what else the client writes. Raises UserError if its program
    cannot run.
    """
    load, generator = context.spec["load"], context.generator
    words = generator.command(context.address, PORT, load, rate_rps, duration_s)
    words = clients.located(words)
    limit_s = generator.time_limit_s(load, duration_s)
    status = _run(context, words, log, limit_s)
    wedged = f"wedged: killed after {limit_s:g} s"
    return {
        "command": " ".join(words).replace(f"{ROOT}/", ""),
        "client_state": wedged if status is None else f"exit {status}",
    }


def _run(context: Context, words: Sequence[str], log: Path, limit_s: float) -> int | None:
    """Run the client to its end; return its status, None if it wedged."""
    log.unlink(missing_ok=True)
    process = context.client.start(
        words, output=log, cpus=context.cpus["client"], folder=log.parent
    )  # fmt: skip
    context.state.client = process
    status = process.wait(limit_s)
    if status is None:
        process.kill()
    context.state.client = None
    if status in clients.NOT_RUN:
        raise failure(context, f"ended with exit status {status}", log)
    return status


def replies(context: Context, log: Path, duration_s: float) -> int | None:
    """Return how many replies a report has; None if it is not whole."""
    return _counted(context, log, duration_s, "replies")


def _counted(context: Context, log: Path, duration_s: float, column: str) -> int | None:
    try:
        return context.generator.parse(context.generator.read(log), duration_s)[column]
    except Truncated:
        return None


def check_reports(context: Context, points: list[dict]) -> None:
    """Raise UserError if the client offered nothing at any rate at which the server ran.

    It did where its report is whole and tells of a connection that it began. What a server does to
    its client, by its end too, is a result.
    """
    ran = [point for point in points if point["server_state"] == "ran"]
    column, duration_s = context.generator.attempts, context.spec["duration_s"]
    begun = [_counted(context, context.out / point["log"], duration_s, column) for point in ran]
    if any(begun) or not ran:
        return
    log, state = context.out / ran[-1]["log"], ran[-1]["client_state"]
    if 0 in begun:
        problem = f"began no connection at any of {len(ran)} rates; at the last: {state}"
    else:
        problem = f"left no whole report of any of {len(ran)} rates; at the last: {state}"
    raise failure(context, problem, log)


def failure(context: Context, problem: str, log: Path) -> UserError:
    """Return the error that the trial's client failed, with the last lines of its log.

    The trial's logs stay in the folder of what is not finished.
    """
    where = f"{context.trial.path}: not measured, its logs are in {context.out}"
    return clients.failure(context.spec["client"], problem, server_build.tail(log), where)
