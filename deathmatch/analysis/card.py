"""What a server's card says: its numbers and those of its yardsticks, from one small dataset.

In: an experiment of the dataset, as `deathmatch.analysis.views` has it. Out: a row for each server,
ratios within rounds, and sentences; of the server's connections (memory, listen queue, readiness,
system calls) a name and a sentence each, which for what was not measured says how to measure it.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from deathmatch.analysis import by_trial, phrases, reply_rates, stats
from deathmatch.analysis.findings import REFERENCE
from deathmatch.analysis.stats import NO_TRIAL, Interval
from deathmatch.analysis.views import Experiment
from deathmatch.data import limits
from deathmatch.errors import as_typed
from deathmatch.load import registry
from deathmatch.plan import files, matrix
from deathmatch.plan.server import Server
from deathmatch.quantities import definitions
from deathmatch.quantities.definitions import MEMORY_PER_CONNECTION
from deathmatch.quantities.quantity import ALL_ANSWERED, RATE, REPLY, Quantity

QUANTITIES = (
    definitions.CPU_PER_REPLY, definitions.SWITCHES_PER_REPLY, definitions.LARGEST_RSS,
    definitions.QUANTITIES["connection_time_p50_us"],
    definitions.QUANTITIES["connection_time_p99_us"],
)  # fmt: skip
"""Shown of each server, at its lowest rate."""


@dataclass(frozen=True)
class Row:
    """A server of the card.

    `overload` is the interval of its reply rate `_at_top`, `at_least` that where it answered that
    rate in full; `of_subject` is the subject's over its own. `values` has the median of each
    of QUANTITIES at `ease_rps`, its lowest rate; `limit` says whose limit its highest rate shows.
    `counts`: these are of the points that count; where there is none, they are of all the others.
    """

    server: str
    title: str
    rounds: int
    counts: bool
    overload: Interval
    at_least: bool
    of_subject: Interval
    ease_rps: int | None
    values: dict[str, float | None]
    limit: str | None
    outcome: str
    reason: str


def rows(held: Experiment, subject: str) -> list[Row]:
    """Return a row for each server that was tried: the subject first, then the fastest first."""
    timed = by_trial.joined(held.dataset, held.name, held.points, "connection_time")
    made = [
        _row(held, timed, subject, server) for server in held.trials["server"].unique().to_list()
    ]
    return sorted(made, key=lambda row: (row.server != subject, -(row.overload.estimate or 0)))


def _row(held: Experiment, timed: pl.DataFrame, subject: str, server: str) -> Row:
    mine = timed.filter(pl.col("server") == server)
    counted = by_trial.counted(mine)
    shown = mine if counted.is_empty() else counted
    trials = held.trials.filter(pl.col("server") == server).sort("n")
    ease_rps = mine[RATE].min()
    at_ease = shown.filter(pl.col(RATE).eq_missing(ease_rps))
    failed = trials.filter(~pl.col("outcome").str.starts_with("measured"))
    said = failed.row(0, named=True) if len(failed) else trials.row(0, named=True)
    return Row(
        server=server, title=said["title"], rounds=trials["n"].n_unique(),
        counts=not counted.is_empty(), overload=_overload(_at_top(shown)),
        at_least=_at_least(_at_top(counted)),
        of_subject=_ratio(_at_top(by_trial.counted(timed)), subject, server),
        ease_rps=ease_rps,
        values={quantity.name: _median(at_ease, quantity) for quantity in QUANTITIES},
        limit=whose_limit(mine), outcome=said["outcome"], reason=said["reason"] or "",
    )  # fmt: skip


def _at_top(points: pl.DataFrame) -> pl.DataFrame:
    """Return the point of each server and round at its highest rate, of the fastest variant.

    That rate is a multiple of the server's own capacity; of a closed loop it is 0.
    """
    key = ["server", "n"]
    closed = (pl.col(RATE) == 0).any().over(key)
    top = pl.when(closed).then(0).otherwise(pl.col(RATE).max().over(key))
    highest = points.filter(pl.col(RATE) == top)
    fastest = highest.sort(REPLY, descending=True, nulls_last=True, maintain_order=True)
    return fastest.unique(key, keep="first", maintain_order=True)


def _overload(at_top: pl.DataFrame) -> Interval:
    known = at_top[REPLY].drop_nulls().to_list()
    return stats.interval(known) if known else NO_TRIAL


def _at_least(at_top: pl.DataFrame) -> bool:
    """Return whether half of the trials or more answered in full what they were offered."""
    in_full = (at_top[REPLY] >= ALL_ANSWERED * at_top[RATE]) & (at_top[RATE] > 0)
    return len(at_top) > 0 and in_full.mean() >= 0.5


def _ratio(at_top: pl.DataFrame, subject: str, server: str) -> Interval:
    """Return the subject's reply rate over the server's, within rounds."""
    if server == subject:
        return NO_TRIAL
    return stats.ratio(at_top, pl.col("server") == subject, pl.col("server") == server, REPLY)


def _median(points: pl.DataFrame, quantity: Quantity) -> float | None:
    found = by_trial.values(points, quantity, ["server"])
    return found[quantity.name].median() if len(found) else None


def whose_limit(points: pl.DataFrame) -> str | None:
    """Return whose limit the highest rate shows: one of `data.limits.LIMITS`; None if unknown."""
    if points.is_empty() or "limit" not in points.columns:
        return None
    highest = points.filter(pl.col(RATE) == pl.col(RATE).max())
    shown = highest["limit"].drop_nulls()
    return shown.mode().sort()[0] if len(shown) else None


def why(held: Experiment, row: Row) -> str:
    """Return what limited the server, in a phrase with the number that shows it."""
    mine = held.points.filter(pl.col("server") == row.server)
    highest = mine.filter(pl.col(RATE) == pl.col(RATE).max())
    used = highest["server_cpu_ratio"].median() if "server_cpu_ratio" in mine.columns else None
    overflows = highest["server_listen_overflows"].sum() if len(highest) else 0
    if row.limit == limits.SERVER and used is not None and used >= limits.USED_UP:
        return f"its CPU, of which it used {phrases.percent(used)} %"
    if row.limit == limits.SERVER and overflows:
        return f"its listen queue, which overflowed {phrases.number(overflows)} times"
    return {
        limits.SERVER: "the server",
        limits.CLIENT: "the load generator, not the server",
        limits.TESTBED: "the testbed, not the server",
        limits.NONE: "nothing: it answered all that was offered",
    }.get(row.limit or "", "unknown")


def verdict(held: Experiment, made: Sequence[Row]) -> str:
    """Return in one sentence what the card shows of its subject, the first of the rows."""
    subject = made[0]
    if not subject.counts:
        return _no_number(held, subject)
    rate = phrases.brackets(subject.overload)
    least = "at least " if subject.at_least else ""
    parts = [f"answers {least}{rate} requests a second on one CPU"]
    parts += [
        f"{phrases.brackets(row.of_subject, 2)} of {row.title}"
        for row in made[1:] if row.of_subject.estimate is not None
    ]  # fmt: skip
    cpu_us = subject.values[definitions.CPU_PER_REPLY.name]
    cost = f"; {cpu_us:.3g} µs of CPU a reply" if cpu_us is not None else ""
    few = "" if subject.rounds > 2 else " Too few rounds for an interval."
    return f"{subject.title} {', '.join(parts)}{cost}; what limited it: {why(held, subject)}.{few}"


def _no_number(held: Experiment, subject: Row) -> str:
    if not subject.outcome.startswith("measured"):
        # Each failed check has a clause; the card lists all of them below.
        reason = f": {subject.reason.splitlines()[0].split('; ')[0]}" if subject.reason else ""
        return f"{subject.title} was not measured: {subject.outcome}{reason}."
    if subject.overload.estimate is None:
        return f"{subject.title} has no number: no report of the load generator could be read."
    return (
        f"{subject.title} answered {phrases.number(subject.overload.estimate)} requests a second "
        f"and may do more: the limit was {why(held, subject)}."
    )


def other_work(held: Experiment) -> float | None:
    """Return the share of the CPUs that other work took while load was offered; None if unknown.

    The median over trials of the share at the rate at which it was highest.
    """
    if held.samples.is_empty() or not held.trials["cpus"].count():
        return None
    cpus = held.trials["cpus"].drop_nulls()[0]
    worst = [
        max((at.others for at in limits.others(trial, cpus)), default=0)
        for trial in held.samples.partition_by("server", "variant", "n")
    ]
    return statistics.median(worst)


def standing(made: Sequence[Row], experiment: str) -> str:
    """Return where the subject would stand among the reference's servers, by a ratio; maybe "".

    Its ratio to a yardstick is compared with theirs to the same one: absolute rates are of another
    machine.
    """
    held = Experiment(REFERENCE, experiment)
    if held.trials.is_empty():
        return ""
    points = by_trial.counted(held.points).filter(~pl.col("server").is_in(files.instruments()))
    rates = reply_rates.in_overload(points, ["server", "label"]) if len(points) else points
    for row in made[1:]:
        theirs = rates.filter(~pl.col("at_least"), server=row.server)
        lower_bound = row.at_least and row.limit != limits.SERVER
        if row.of_subject.estimate is None or lower_bound or theirs.is_empty():
            continue
        base = theirs["median"].max()
        ratios = rates.with_columns(ratio=pl.col("median") / base)
        faster = ratios.filter(pl.col("ratio") > row.of_subject.estimate)
        return (
            f"By its ratio to {row.title} it would stand {_ordinal(len(faster) + 1)} of "
            f"{len(ratios) + 1} variants in the dataset {REFERENCE}."
        )
    return ""


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(0 if 10 < number % 100 < 14 else number % 10, "th")
    return f"{number}{ending}"


WAITS = "waits with "
"""How the conformance check of a readiness mechanism begins (`measure.conformance`)."""

DATASETS = ("smoke", "quick", "tour", "full")
"""The datasets that measure other people's servers, the shortest first; the last has them all."""


def facts(held: Experiment, records: Sequence[Mapping], server: Server) -> list[tuple[str, str]]:
    """Return the facts of one server, in the order of the card."""
    trials, points, samples = (
        frame.filter(pl.col("server") == server.name)
        for frame in (held.trials, held.points, held.samples)
    )
    return [
        ("Memory per idle connection", _memory(points, server)),
        ("Listen backlog", _backlog(trials, points, samples)),
        ("Readiness mechanism", _readiness(records, server)),
        ("System calls per reply", _system_calls(trials, server)),
        ("Connections held at once", _held(points)),
    ]


def _memory(points: pl.DataFrame, server: Server) -> str:
    measured = MEMORY_PER_CONNECTION.of_trial(points)
    if measured is not None:
        return f"{measured:.3g} {MEMORY_PER_CONNECTION.unit}, of its resident set"
    holding = [
        name for name in files.names("experiment") if files.experiment(name).client == "wsload"
    ]
    return _unmeasured(server, holding)


def _backlog(trials: pl.DataFrame, points: pl.DataFrame, samples: pl.DataFrame) -> str:
    asked = trials["backlog"].max() if "backlog" in trials.columns else None
    granted = samples["accept_queue_limit"].max()
    said = "the experiment sets none" if asked is None else f"requested {phrases.number(asked)}"
    said += (
        ", the kernel's was not read" if granted is None
        else f", the kernel has {phrases.number(granted)}"
    )  # fmt: skip
    if points.is_empty():
        return said
    highest = points.filter(pl.col(RATE) == pl.col(RATE).max())
    overflows = highest["server_listen_overflows"].median()
    longest = points["accept_queue_connections_max"].max()
    if overflows is not None:
        said += f"; {phrases.number(overflows)} overflows at the highest rate"
    return said if longest is None else f"{said}; at most {phrases.number(longest)} waited"


def _readiness(records: Sequence[Mapping], server: Server) -> str:
    checks = [
        check
        for record in records
        for check in record.get("conformance") or []
        if check["name"].startswith(WAITS)
    ]
    for check in checks:
        mechanism = check["name"].removeprefix(WAITS)
        seen = "seen in its idle threads" if check["ok"] else f"but {check['seen']}"
        return f"{mechanism}, {seen}"
    if "readiness" not in server.factors:
        return (
            'not measured: add a line such as readiness = ["epoll"] below [factors] of server.toml '
            "to check it"
        )
    return _unmeasured(server, _with_factor("readiness"))


def _system_calls(trials: pl.DataFrame, server: Server) -> str:
    counted = trials["syscalls_per_reply"].drop_nulls()
    if len(counted):
        waits = trials["waits_per_reply"].drop_nulls().median()
        return f"{counted.median():.3g}, {waits:.3g} of them waits"
    counting = [
        name
        for name in files.names("experiment")
        if files.experiment(name).system_calls_rate_rps is not None
    ]
    return _unmeasured(server, counting)


def _held(points: pl.DataFrame) -> str:
    columns = [
        name for name in ("concurrent_connections", "server_established_max", "idle_held")
        if name in points.columns
    ]  # fmt: skip
    most = max((points[name].max() or 0 for name in columns), default=0)
    return f"{phrases.number(most)} at most" if most else "not measured"


def _with_factor(factor: str) -> list[str]:
    return [name for name in files.names("experiment") if factor in files.experiment(name).factors]


def _unmeasured(server: Server, experiments: Sequence[str]) -> str:
    """Return how to measure what only these experiments measure."""
    own = [name for name in experiments if name in server.experiments]
    if not own:
        named = " or ".join(experiments)
        return f"not measured: only {named} measures it; add it to experiments in server.toml"
    client = files.experiment(own[0]).client
    if client and registry.client(client).searches:
        command = f"deathmatch measure {server.name} --experiment {own[0]}"
    else:
        dataset = next(name for name in DATASETS if matrix.trials(name, [server.name], [own[0]]))
        chosen = f"dataset={dataset} servers={server.name} experiments={own[0]}"
        command = f"snakemake --config {chosen}"
    return f"not measured here; to measure it: {as_typed(command)}"
