"""Run the load generators of a trial, and distinguish their failures from the server's.

One client offers the whole load; several share it, begin at an agreed instant, and write a report
each.
"""

import contextlib
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from deathmatch.builds import clients
from deathmatch.errors import Truncated, UserError
from deathmatch.hosts import clocks
from deathmatch.hosts.clocks import Clocks
from deathmatch.hosts.host import Host
from deathmatch.hosts.process import Process, tail
from deathmatch.load.generator import BODY, FIRST_WRONG, Fields, LoadGenerator, Part
from deathmatch.measure import many_connections
from deathmatch.measure.conformance import Check
from deathmatch.measure.context import PORT, Context
from deathmatch.measure.many_connections import Placement
from deathmatch.measure.sampler import Sampler
from deathmatch.plan.experiment import expected_body
from deathmatch.plan.paths import ROOT
from deathmatch.plan.record import LATE_US, loads

WARM_UP_RATE_RPS = 500
ATTEMPTS = 5
# Time for a message to each client, and for the start of a process on a busy one.
LEAD_S = 1.0


@dataclass
class Load:
    """One client's part of a rate: the file of its report, its command, its process.

    Its name is the host's, with a number if several processes of the host share its part.
    """

    name: str
    client: Host
    log: Path
    folder: Path
    words: list[str]
    limit_s: float
    # Whether there is no other part.
    alone: bool
    process: Process | None = None
    status: int | None = None

    @property
    def state(self) -> str:
        """How it ended: "exit N", or "wedged: …"."""
        wedged = f"wedged: killed after {self.limit_s:g} s"
        return wedged if self.status is None else f"exit {self.status}"

    @property
    def command(self) -> str:
        """The command, with paths relative to the project's root."""
        return " ".join(self.words).replace(f"{ROOT}/", "")

    @property
    def late_us(self) -> int:
        """How long after the agreed instant it began."""
        return (self.process.late_ns or 0) // 1000


def warm_up(context: Context) -> None:
    """Offer a load for as long as server and dataset specify, without keeping its report."""
    rate_rps = context.spec.get("warm_up_rate_rps", WARM_UP_RATE_RPS)
    with context.times.of("warm_up"), tempfile.TemporaryDirectory(dir=context.out) as folder:
        offer(context, rate_rps, context.trial.warm_up_s, Path(folder, "warm-up.txt"))


def offer(
    context: Context, rate_rps: int, duration_s: float, log: Path, sampler: Sampler | None = None,
    load: Mapping | None = None, *, overload: bool = False,
) -> dict:  # fmt: skip
    """Offer one rate; return the clients' fields of `RecordedPoint`.

    `sampler` takes samples meanwhile; `load` overrides keys of the trial's load. Several processes
    of a host share an `overload` that one cannot hold (`many_connections`). A client's report is
    `log`, or next to it with the client's name, as are its other files. If several clients began
    too far apart (LATE_US), the rate is offered again, at most ATTEMPTS times; the last attempt
    counts, and its lateness is recorded. Raises UserError if a program cannot run, or a host cannot
    hold an overload.
    """
    body = expected_body(context.spec["conformance"], context.spec["load"])
    asked = context.spec["load"] | ({} if body is None else {BODY: body}) | dict(load or {})
    placements = [
        many_connections.of_overload(context, client, asked, rate_rps, duration_s)
        if overload else Placement(sources=context.sources(client))
        for client in context.clients
    ]  # fmt: skip
    alone = len(placements) == 1 and placements[0].processes == 1
    before = _clocks(context, alone)
    for attempt in range(1, ATTEMPTS + 1):
        offering = sampler.offering(rate_rps, duration_s) if sampler else contextlib.nullcontext()
        made = _loads(context, placements, asked, rate_rps, duration_s, log)
        made = _offered(context, made, before, offering)
        if max(load.late_us for load in made) <= LATE_US or attempt == ATTEMPTS:
            break
    after = _clocks(context, alone)
    compared = (
        {"clocks": {name: _between(before, after, name) for name in before}}
        if context.bed.separate
        else {}
    )
    if alone:
        (load,) = made
        return {"log": log.name, "command": load.command, "client_state": load.state, **compared}
    opened = sampler.opened if sampler else {}
    return {
        "attempts": attempt,
        **compared,
        "clients": [_told(load, before, after) | _counted_of(load, opened) for load in made],
    }


def compact(context: Context, offered: dict) -> None:
    """Make a rate's files small enough to keep; `offered` is the result of `offer`."""
    for load in loads(offered):
        context.generator.compact(context.out / load["log"])


def _counted_of(load: Load, opened: dict[str, int]) -> dict:
    # The kernel counts connections of a host, not of each process.
    return {"opened": opened[load.name]} if load.name in opened else {}


def _told(load: Load, before: dict[str, Clocks], after: dict[str, Clocks]) -> dict:
    clock = _between(before, after, load.client.name)
    return {
        "client": load.name, "log": load.log.name, "command": load.command,
        "client_state": load.state, "late_us": load.late_us,
        "clock_offset_us": clock["offset_us"], "clock_bound_us": clock["bound_us"],
    }  # fmt: skip


def _between(before: dict[str, Clocks], after: dict[str, Clocks], name: str) -> dict[str, int]:
    """Return how far a host's clock is ahead of ours, and the bound of its error."""
    offset = clocks.spanning(before[name].monotonic, after[name].monotonic)
    return {"offset_us": offset.ns // 1000, "bound_us": -(-offset.bound_ns // 1000)}


def _clocks(context: Context, alone: bool) -> dict[str, Clocks]:
    """Return the offsets of the hosts' clocks from ours; {} with one machine and one client.

    The latencies of a client that is `alone` are on its own clock; several need an agreed instant.
    """
    hosts = context.bed.hosts if context.bed.separate else context.clients
    if alone and not context.bed.separate:
        return {}
    return {host.name: host.clocks() for host in hosts}


def _offered(
    context: Context, made: list[Load], compared: dict[str, Clocks],
    offering: contextlib.AbstractContextManager,
) -> list[Load]:  # fmt: skip
    """Run the clients of a rate to their ends, within the context `offering`."""
    with contextlib.ExitStack() as during:
        if made[0].alone:
            during.enter_context(offering)
            _start(context, made, {})
        else:
            now_ns = time.monotonic_ns()
            offsets = {host.name: compared[host.name].monotonic for host in context.clients}
            _start(context, made, clocks.agreed(now_ns, offsets, LEAD_S))
            time.sleep(max(0, LEAD_S - (time.monotonic_ns() - now_ns) / 1e9))
            during.enter_context(offering)
        deadline = time.monotonic() + max(load.limit_s for load in made)
        for load in made:
            load.status = load.process.wait(max(0, deadline - time.monotonic()))
            if load.status is None:
                load.process.kill()
        context.state.loads.clear()
    for load in made:
        _bring(load)
    for load in made:
        if load.status in clients.NOT_RUN:
            raise failure(context, f"ended with exit status {load.status}", load.log, load.client)
        if load.status == clients.KILLED:
            raise UserError(
                f"the load generator {context.spec['client']} was killed on {load.client.name}",
                where=f"{context.trial.path}: not measured",
                remedy="run again, and it is measured anew; if it is killed each time, `dmesg` "
                "tells whether memory ran out",
            )
    return made


def _start(context: Context, made: list[Load], at_ns: dict[str, int]) -> None:
    """Start the load generators, at once or at instants of their hosts' clocks."""
    for load in made:
        load.process = load.client.start(
            load.words, output=load.log, cpus=context.cpus[load.client.name], folder=load.folder,
            at_ns=at_ns.get(load.client.name),
        )  # fmt: skip
        context.state.loads.setdefault(load.client.name, []).append(load.process)


def _loads(
    context: Context, placements: Sequence[Placement], asked: Mapping, rate_rps: int,
    duration_s: float, log: Path,
) -> list[Load]:  # fmt: skip
    """Return the parts of a rate, ready to start; empty parts of a low rate are left out.

    `placements` are those of the clients' hosts.
    """
    generator = context.generator
    places = [
        (client, number, placement)
        for client, placement in zip(context.clients, placements)
        for number in range(1, placement.processes + 1)
    ]
    made = []
    for index, (client, number, placement) in enumerate(places):
        words = generator.command(
            context.address, PORT, asked, rate_rps, duration_s, Part(index, len(places)),
            placement.sources,
        )  # fmt: skip
        if words is None:
            continue
        name = client.name if placement.processes == 1 else f"{client.name}-{number}"
        limit_s = generator.time_limit_s(asked, duration_s)
        made.append(_load(context, client, name, words, log, limit_s, alone=len(places) == 1))
    return made


def _load(
    context: Context, client: Host, name: str, words: list[str], log: Path, limit_s: float,
    *, alone: bool,
) -> Load:  # fmt: skip
    """Return a client's part of a rate with a folder of its own."""
    own = log if alone else log.with_name(f"{log.stem}.{name}{log.suffix}")
    _remove(own, own.with_suffix(""))
    if client.shared:
        folder = log.parent if alone else log.parent / f".{name}"
        folder.mkdir(exist_ok=True)
    else:
        folder = client.folder / ("load" if alone else f"load-{name}")
        client.make_folder(folder)
    words = context.bed.installations[client.name].located(words)
    return Load(name, client, own, folder, words, limit_s, alone)


def _remove(*paths: Path) -> None:
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _bring(load: Load) -> None:
    """Move the client's other files next to the log, under the client's name."""
    here = load.log.parent
    if load.client.shared and load.alone:
        return
    if load.client.shared:
        folder = load.folder
    else:
        folder = here / f".{load.name}"
        load.client.fetch_all(load.folder, folder)
        load.client.run("rm", "-r", str(load.folder))
    if not folder.exists():
        return
    for path in sorted(folder.iterdir()):
        name = path.name if load.alone else f"{path.stem}.{load.name}{path.suffix}"
        path.rename(here / name)
    folder.rmdir()


def replies(context: Context, offered: dict, duration_s: float) -> int | None:
    """Return how many good answers the reports of `offer` have; None if one is incomplete."""
    known = fields(context, offered, duration_s)
    return None if known is None else context.generator.good(known)


def fields(
    context: Context, offered: dict, duration_s: float, folder: Path | None = None
) -> Fields | None:
    """Return the fields of the reports of `offer`, in `folder`, default: the trial's.

    None if one is incomplete.
    """
    generator = context.generator
    reports = [generator.read((folder or context.out) / load["log"]) for load in loads(offered)]
    try:
        return generator.parse(generator.merge(reports), duration_s)
    except Truncated:
        return None


def check_reports(context: Context, points: list[dict]) -> None:
    """Raise UserError if the clients offered nothing at any rate at which the server ran.

    A complete report with a connection that was begun shows that they did. Whatever a server does
    to its client, even by its end, is a result.
    """
    ran = [point for point in points if point["server_state"] == "ran"]
    column, duration_s = context.generator.attempts, context.spec["duration_s"]
    reports = [fields(context, point, duration_s) for point in ran]
    begun = [known and known[column] for known in reports]
    if any(begun) or not ran:
        return
    last = loads(ran[-1])[-1]
    log, state = context.out / last["log"], last["client_state"]
    if 0 in begun:
        problem = f"began no connection at any of {len(ran)} rates; at the last: {state}"
    else:
        problem = f"left no whole report of any of {len(ran)} rates; at the last: {state}"
    raise failure(context, problem, log)


def failure(context: Context, problem: str, log: Path, client: Host | None = None) -> UserError:
    """Return the error that the trial's client failed, with the last lines of its log.

    The trial's logs stay in the folder of unfinished trials.
    """
    where = f"{context.trial.path}: not measured, its logs are in {context.out}"
    if client and len(context.clients) > 1:
        problem = f"{problem} on {client.name}"
    return clients.failure(context.spec["client"], problem, tail(log), where)


def check_answers(context: Context) -> Check:
    """Offer some requests by the trial's load generator; return what it found wrong.

    The libraries of `conformance` accept answers that a load generator may not accept, such as an
    interim answer before the final one, or another spelling of a header. Lost or late answers are
    no fault, as the load causes them. Takes about a second. Raises UserError if the load generator
    failed while the server ran.
    """
    name = f"{context.spec['client']} takes its answers"
    rate_rps, duration_s = context.generator.few(context.spec["load"])
    with tempfile.TemporaryDirectory(dir=context.out) as folder:
        log = Path(folder, "few.txt")
        offered = offer(context, rate_rps, duration_s, log)
        for load in loads(offered):
            context.generator.compact(log.with_name(load["log"]))
        known = fields(context, offered, duration_s, log.parent)
        first = log.with_name(loads(offered)[0]["log"])
        whole = known is not None or context.generator.refuses
        begun = known is None or known[context.generator.attempts]
        if not (whole and begun) and context.server_pids():
            what = "began no connection" if whole else "left no whole report"
            state = offered["client_state"]
            raise failure(context, f"{what} of its first requests: {state}", first)
        said = tail(first)
    return Check(name, answers_problem(context.generator, known, said))


def answers_problem(generator: LoadGenerator, fields: Fields | None, said: str = "") -> str:
    """Return how many answers a report calls invalid, by class; "" if all are good.

    Without the fields of a complete report, return what the client `said`.
    """
    if fields is None:
        return f"it left no whole report: {said.strip()}"
    invalid = generator.invalid(fields)
    if invalid:
        counts = ", ".join(f"{name} {count}" for name, count in invalid.items())
        first = f", the first: {fields[FIRST_WRONG]}" if fields.get(FIRST_WRONG) else ""
        return f"invalid answers: {counts}{first}; good ones: {generator.good(fields)}"
    return "" if generator.good(fields) else f"no good answer: {_failures(fields)}"


def _failures(fields: Mapping[str, object]) -> str:
    """Return the counts of failures that a report has."""
    begins = ("errors_", "outcome_", "messages_lost")
    counts = [f"{name} {count}" for name, count in fields.items()
              if name.startswith(begins) and count]  # fmt: skip
    return ", ".join(counts) or "its report has no failure"


def pids(context: Context, client: Host) -> list[int]:
    """Return the pids of a client's running load generators."""
    return [process.pid for process in context.state.loads.get(client.name, ())]
