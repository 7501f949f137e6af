"""Try any command as a server, without a folder: `./shell deathmatch try 'node app.js {port}'`.

In a minute it reports the server's answers, also under load; the cost of a reply, compared with the
null server and a known one; the capacity, and what limits it; and the listen backlog and the
readiness mechanism, as the kernel shows them. Nothing is kept.
"""

import argparse
import json
import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from pathlib import Path

from deathmatch.builds import clients, toolchain
from deathmatch.builds.clone import Clone
from deathmatch.data import records
from deathmatch.errors import UserError, as_typed
from deathmatch.hosts import netns_testbed, sandbox
from deathmatch.hosts.testbed import Command
from deathmatch.measure import conformance, steps
from deathmatch.measure import trial as measurement
from deathmatch.measure.context import PORT, Context, prepare
from deathmatch.plan import files, matrix, measure_design, new_server, paths
from deathmatch.plan.dataset import ExperimentPlan, Grid, Search
from deathmatch.plan.experiment import ConformanceCheck
from deathmatch.plan.server import Server
from deathmatch.plan.trial import Trial
from deathmatch.run import progress, subcommands

NAME = "try"
EXPERIMENTS = {False: "single-thread", True: "c10k"}
# It has every experiment; nothing is written into it.
DATASET = "full"
OPEN_S = 10
"""How long the ten thousand connections are held; they are opened 128 at a time."""
REQUEST = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
REQUESTS = 3
"""How many requests are sent before the load, to find whether the bodies are alike."""
LONGEST_TITLE = 40


class Installation(Clone):
    """This clone, with the user's command as the server NAME, in the user's folder and PATH."""

    def built(self, server: Server) -> dict:
        """Return the record of a server's build; the command needs no build."""
        if server.name != NAME:
            return super().built(server)
        return {"ok": True, "version": "", "log": "", "tools": {"toolchain": toolchain.name()}}

    def command(self, server: Server, values: Mapping) -> Command:
        """Return the command that starts a server."""
        if server.name != NAME:
            return super().command(server, values)
        words = [
            word.replace("{host}", str(values["host"])).replace("{port}", str(values["port"]))
            for word in shlex.split(server.run)
        ]
        return Command(words, own_environment(), paths.of_caller().resolve())


def own_environment() -> dict[str, str]:
    """Return the user's environment, without the project's Python."""
    inside = str(paths.ROOT / "build")
    kept = [part for part in os.environ["PATH"].split(os.pathsep) if not part.startswith(inside)]
    return {**os.environ, "PATH": os.pathsep.join(kept)}


def main(given: argparse.Namespace) -> int:
    """Try the command; return WRONG for wrong answers, 1 if it cannot be measured."""
    server = _server(given.command, given.websocket)
    files.WITHOUT_FOLDER[NAME] = server
    experiment = EXPERIMENTS[given.websocket]
    sandbox.die_with_owner()
    subcommands.wait_for_the_machine(_say)
    with subcommands.scratch() as folder:
        status, seen = subcommands.in_sandbox(partial(_look, _trial(server, experiment), folder))
        if status:
            return status
        print(_first_look(seen, given.websocket), flush=True)
        if not given.websocket and seen["status"] != 200:
            raise UserError(
                f"it answers GET / with status {seen['status']}", f"`{given.command}`",
                "let it answer with status 200: no other answers are measured",
            )  # fmt: skip
        known = measure_design.yardsticks(server, experiment, progress.build_s)[:2]
        sides = [
            files.server(side.server)
            for side in known
            if subcommands.run("build", side.server) == 0
        ]
        trials = [_trial(side, experiment) for side in sides] + [_trial(server, experiment, seen)]
        Clone().clients(*clients.of_trial(trials[-1]))
        for place, trial in enumerate(trials, 1):
            _say(f"measuring {place} of {len(trials)}: {trial.server.title}")
            if status := subcommands.in_sandbox(partial(_measure, trial, folder))[0]:
                return status
        made = sorted(folder.glob("*/*/1/trial.json"))
        return _report(experiment, given, made)


def _server(command: str, websocket: bool) -> Server:
    """Return the server that a command starts; raise UserError if its program is not there."""
    program, *_ = new_server.words_of(command)
    file = paths.of_caller() / program if "/" in program else program
    if shutil.which(file, path=own_environment()["PATH"]) is None:
        remedy = "name a program that is on PATH, or a file"
        raise UserError(f"{program}: not found", f"`{command}`", remedy)
    short = command if len(command) <= LONGEST_TITLE else f"{command[: LONGEST_TITLE - 1]}…"
    said = {
        "title": short, "language": "unknown", "source": "ours", "about": command,
        "version": "true", "experiments": (EXPERIMENTS[websocket],), "run": command,
        "ready_timeout_s": 10,
    }  # fmt: skip
    return Server.model_validate(said, context={"name": NAME})


def _trial(server: Server, name: str, seen: Mapping | None = None) -> Trial:
    """Return the trial of a server; that of the user's has a search for the capacity.

    With `seen`, as `_look` returns it, answers under load are compared with those before it.
    """
    experiment = files.experiment(name)
    rates_rps, duration_s = measure_design.load(name)
    rated = measure_design.searches(name)
    plan = ExperimentPlan(
        rates_rps=rates_rps, duration_s=duration_s if rated else OPEN_S, grids=[Grid()],
        search=Search(**measure_design.SEARCH) if rated and server.name == NAME else None,
    )  # fmt: skip
    if rated and seen:
        asked = ConformanceCheck(
            name="GET / is answered as before the load", send=REQUEST, status=[200],
            body=seen["body"],
        )  # fmt: skip
        experiment = experiment.model_copy(update={"conformance": (asked,)})
    levels = measure_design.levels_of_cards(name)
    variant = matrix.product(experiment, {key: of[:1] for key, of in levels.items()}, server)[0]
    return Trial(
        dataset=DATASET, experiment=experiment, plan=plan, server=server, variant=variant, n=1
    )


def _bed(trial: Trial):
    spec = files.testbed("netns")
    return netns_testbed.build(spec, trial.spec()["sysctl"], lambda *_: Installation())


def _look(trial: Trial, folder: Path) -> dict:
    """Start the server, send requests and return what was seen; raise UserError if that fails."""
    context = prepare(trial, trial.spec(), _bed(trial), folder)
    try:
        running, problem = steps.start(context)
        if problem:
            problem = problem.partition("; if it needs longer")[0]
            # The first line is the command.
            said = [line for line in running.tail().splitlines() if not line.startswith("$ ")]
            raise UserError(": ".join([problem, *said[-1:]]), f"`{trial.server.run}`")
        seen = _asked(context) if "frames" not in context.spec["conformance"][0] else {}
        listeners = context.server.listeners(PORT)
        seen["backlog"] = max((one.limit for one in listeners), default=None)
        seen["waits"] = sorted(conformance.mechanisms(context.server, context.server_pids()))
        steps.stop(context, running)
        return seen
    finally:
        context.end()


def _asked(context: Context) -> dict:
    """Return the answer to GET /, after REQUESTS of them: status, and the body if all are alike."""
    answers = []
    for _ in range(REQUESTS):
        with closing(context.bed.dial(context.address, PORT, conformance.TIMEOUT_S)) as connection:
            connection.sendall(REQUEST.encode())
            try:
                answers.append(conformance.answer(connection, REQUEST))
            except (OSError, conformance.NO_ANSWER) as error:
                what = f"no HTTP answer to GET /: {error}"
                raise UserError(what, f"`{context.trial.server.run}`") from None
    statuses, bodies = zip(*answers)
    alike = len(set(bodies)) == 1
    text = bodies[0].decode("utf-8", "replace")
    return {
        "status": statuses[0], "bytes": len(bodies[0]), "text": text[:60],
        "body": text if alike else None,
    }  # fmt: skip


def _measure(trial: Trial, folder: Path) -> dict:
    """Measure a trial and write its record below `folder`; return nothing."""
    out = folder / trial.server.name / trial.variant.name / "1"
    out.mkdir(parents=True)
    bed = _bed(trial)
    try:
        record = measurement.measure(trial, bed, out)
    finally:
        bed.end()
    (out / "trial.json").write_text(json.dumps(record))
    return {}


def _first_look(seen: Mapping, websocket: bool) -> str:
    """Return one or two lines on what was seen before the load."""
    lines = []
    if not websocket:
        told = f"{seen['bytes']} bytes, {seen['text']!r}"
        if seen["body"] is None:
            told += "; the body differs between answers, so only the status is checked"
        lines.append(f"GET /: status {seen['status']}, {told}")
    waits = ", ".join(seen["waits"]) or "no readiness mechanism: a blocking call"
    lines.append(f"listen backlog: {seen['backlog']}; its idle threads wait in {waits}")
    return "\n".join(lines)


def _report(experiment: str, given: argparse.Namespace, trials: list[Path]) -> int:
    """Print what the records of trials show; return the exit status."""
    # They take seconds to import: the first look does not wait for them.
    from deathmatch.analysis import card as analysis
    from deathmatch.analysis.views import Experiment
    from deathmatch.data import tidy
    from deathmatch.paper import card

    held = Experiment(DATASET, experiment, frames=tidy.frames(experiment, trials))
    made = analysis.rows(held, NAME)
    heads, lines = card.servers_table(held, made)
    alarm = analysis.alarms(held)
    card.print_table(list(alarm.values()), heads, lines)
    print("", analysis.verdict(held, made), *card.wrong(held, made, 1), sep="\n")
    own = next(record for record in map(records.read, trials) if record["server"] == NAME)
    for check in own.get("conformance", []):
        if not check["ok"]:
            print(f"FAILED {check['name']}: {check['seen']}")
    kind = "websocket" if given.websocket else "one-request"
    words = f"deathmatch new-server mine --kind {kind} --command {shlex.quote(given.command)}"
    print(f"\nkeep it, with a card: {as_typed(words)}")
    if NAME in alarm:
        return subcommands.WRONG
    return 1 if made[0].failed else 0


def _say(text: str) -> None:
    print(f"[try] {text}", file=sys.stderr, flush=True)
