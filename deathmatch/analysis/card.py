"""The contents of a server's card: its numbers and its yardsticks', from one small dataset.

In: an experiment of the dataset, as `deathmatch.analysis.views` has it. Out: a row for each server,
ratios within rounds, and sentences, also on the server's listen queue and readiness mechanism.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from deathmatch.analysis import by_trial, phrases, searched, stats
from deathmatch.analysis.stats import NO_TRIAL, Interval
from deathmatch.analysis.views import Experiment
from deathmatch.capacity_search import search
from deathmatch.data import limits
from deathmatch.data.laws.law import KEY
from deathmatch.data.strict.trial_checks import WAITS
from deathmatch.load.generator import FIRST_WRONG
from deathmatch.plan import measure_design
from deathmatch.plan.measure_design import OPENING, PACES
from deathmatch.plan.record import MEASURED
from deathmatch.plan.server import Server
from deathmatch.quantities import definitions
from deathmatch.quantities.definitions import CPU_PER_REPLY, MEMORY_PER_CONNECTION, QUANTITIES
from deathmatch.quantities.quantity import ALL_ANSWERED, RATE, REPLY, WRONG, Quantity

ECHO = "echo"
BUSY = 1 / 3
"""Other work is named from this share of the CPUs on: less may be an error of counting."""
UNDER_WAY, PER_SECOND = PACES


@dataclass(frozen=True)
class Shown:
    """A column of the card: a quantity of the variants with a level of OPENING, if there is one."""

    quantity: Quantity
    opening: int = UNDER_WAY
    heading: str = ""


REQUESTS = (
    Shown(QUANTITIES["latency_p50_us"], heading="Latency, median (µs)"),
    Shown(QUANTITIES["latency_p99_us"], heading="p99 (µs)"),
    Shown(definitions.SWITCHES_PER_REPLY, heading="Switches per reply"),
    Shown(definitions.LARGEST_RSS, heading="Memory (MB)"),
)  # fmt: skip
"""Columns of servers that are offered requests, at the rate at which costs are compared.

Latency counts from when a request was due.
"""
MESSAGES = (
    Shown(QUANTITIES["connections_held"], UNDER_WAY, f"Held, {UNDER_WAY} opening at once"),
    Shown(QUANTITIES["connections_held"], PER_SECOND, "Held, 1,000 opened a second"),
    Shown(MEMORY_PER_CONNECTION, heading="Memory each (KiB)"),
    Shown(QUANTITIES["message_latency_p50_us"], heading="Latency, median (µs)"),
    Shown(QUANTITIES["message_latency_p95_us"], heading="p95 (µs)"),
)  # fmt: skip
"""Columns of servers that hold WebSocket connections; latency is from the intended send."""


@dataclass(frozen=True)
class Capacity:
    """The result of searches: a capacity over rounds, a bound of it, or the reason for neither.

    `bound`: the client's own limit came first, so the server may answer more.
    """

    rate: Interval = NO_TRIAL
    bound: bool = False
    reason: str = ""


@dataclass(frozen=True)
class Row:
    """A server of the card.

    `cost` is CPU per reply, or per echo, at the rate that all servers answer; `over_it` is the
    subject's cost over this server's within rounds. `values` has the median of each column.
    `counts`: cost and values are of points that count; without such points, of all points.
    """

    server: str
    title: str
    rounds: int
    counts: bool
    cost: Interval
    over_it: Interval
    capacity: Capacity
    values: tuple[float | None, ...]
    outcome: str
    reason: str

    @property
    def failed(self) -> bool:
        """Whether the server could not be measured."""
        return self.outcome not in MEASURED


def columns(held: Experiment) -> tuple[Shown, ...]:
    """Return the columns of an experiment's card besides cost and capacity."""
    return REQUESTS if measure_design.searches(held.name) else MESSAGES


def rows(held: Experiment, subject: str) -> list[Row]:
    """Return a row for each server that was tried: the subject, then the others by their cost."""
    timed = held.points.join(by_trial.of_points(held.times, "latency"), on=KEY, how="left")
    compared = timed.filter(pl.col(RATE) == common_rps(held))
    costs = _costs(held, by_trial.counted(compared))
    made = [
        _row(held, compared, costs, subject, server)
        for server in held.trials["server"].unique().to_list()
    ]
    return sorted(made, key=lambda row: (row.server != subject, row.cost.estimate or float("inf")))


def common_rps(held: Experiment) -> int | None:
    """Return the highest rate that each measured server answered, else the lowest offered.

    None without a point.
    """
    offered = held.points.filter(pl.col(RATE) > 0)
    medians = offered.group_by(RATE, "server", maintain_order=True).agg(pl.col(REPLY).median())
    answered = medians.group_by(RATE, maintain_order=True).agg(
        all_answered=(pl.col(REPLY) >= ALL_ANSWERED * pl.col(RATE)).all(), servers=pl.len()
    )
    carried = answered.filter("all_answered", servers=offered["server"].n_unique())
    return carried[RATE].max() or offered[RATE].min()


def _row(
    held: Experiment, compared: pl.DataFrame, costs: pl.DataFrame, subject: str, server: str
) -> Row:  # fmt: skip
    mine = compared.filter(server=server)
    counted = by_trial.counted(mine)
    shown = mine if counted.is_empty() else counted
    trials = held.trials.filter(server=server).sort("n")
    failed = trials.filter(~pl.col("outcome").is_in(MEASURED))
    said = failed.row(0, named=True) if len(failed) else trials.row(0, named=True)
    own = costs if len(counted) else _costs(held, shown)
    known = own.filter(server=server)["cost_us"].drop_nulls().to_list()
    return Row(
        server=server, title=said["title"], rounds=trials["n"].n_unique(),
        counts=not counted.is_empty(), cost=stats.interval(known),
        over_it=NO_TRIAL if server == subject else stats.ratio(
            costs, pl.col("server") == subject, pl.col("server") == server, "cost_us"
        ),
        capacity=_capacity(held.probes.filter(server=server)),
        values=tuple(_median(_opened(shown, of.opening), of.quantity) for of in columns(held)),
        outcome=said["outcome"], reason=said["reason"] or "",
    )  # fmt: skip


def _opened(points: pl.DataFrame, level: int) -> pl.DataFrame:
    """Return the points at a level of OPENING; all points of an experiment without it."""
    return points.filter(pl.col(OPENING) == level) if OPENING in points.columns else points


def alarms(held: Experiment) -> dict[str, str]:
    """Return a sentence on the wrong answers of each server that gave any, with the first one."""
    said = {}
    if WRONG in held.points.columns:
        wrong = held.points.group_by("server", maintain_order=True).agg(
            pl.first("title"), pl.sum(WRONG), pl.col(FIRST_WRONG).drop_nulls().first()
        )
        for server, title, count, first in wrong.filter(pl.col(WRONG) > 0).iter_rows():
            example = "" if first is None else f", the first: {first}"
            said[server] = (
                f"{title} gave {phrases.counted(int(count), 'wrong answer')} under load{example}; "
                "its numbers are of its good answers."
            )
    failed = held.trials.filter(outcome="answers wrongly").unique(
        "server", keep="first", maintain_order=True
    )
    for server, title, reason in failed.select("server", "title", "reason").iter_rows():
        said[server] = f"{title} answers wrongly: {reason.splitlines()[0]}"
    return dict(sorted(said.items()))


def _costs(held: Experiment, points: pl.DataFrame) -> pl.DataFrame:
    """Return server, n and `cost_us` of each trial: CPU per reply, or per echo.

    An echo's cost is measured in the later half of a run, once all its connections are open.
    """
    if measure_design.searches(held.name):
        found = by_trial.values(points, CPU_PER_REPLY, ["server"])
        return found.select("server", "n", cost_us=CPU_PER_REPLY.name)
    opened = _opened(points, UNDER_WAY)
    during = held.samples.join(opened.select(*KEY, "duration_us"), on=KEY)
    since_us = pl.col("time_us") - pl.col("time_us").min().over(KEY)
    all_open = pl.col("server_established") >= 0.99 * pl.col("server_established").max().over(KEY)
    late = during.with_columns(since_us=since_us).filter(
        all_open, pl.col("since_us").is_between(pl.col("duration_us") // 2, pl.col("duration_us"))
    )  # fmt: skip
    worked = late.group_by(KEY, maintain_order=True).agg(
        used_ns=pl.col("server_cpu_ns").max() - pl.col("server_cpu_ns").min(),
        took_s=(pl.col("time_us").max() - pl.col("time_us").min()) / 1e6,
        from_s=pl.col("since_us").min() // 1_000_000,
    )  # fmt: skip
    echoes = (
        held.seconds.filter(quantity="latency")
        .join(worked, on=KEY)
        .filter(pl.col("since_start_s") > pl.col("from_s"))
        .group_by(KEY, maintain_order=True)
        .agg(echoes_rps=pl.col("count").mean())
    )
    cost_us = pl.col("used_ns") / 1e3 / pl.col("took_s") / pl.col("echoes_rps")
    known = worked.filter(pl.col("took_s") > 0).join(echoes, on=KEY)
    return known.select("server", "n", cost_us=cost_us).sort("server", "n")


def _capacity(probes: pl.DataFrame) -> Capacity:
    """Return a server's capacity or its bound, by the outcome that most searches have."""
    ends = searched.ends(probes)
    found, limited = (ends.filter(outcome=how) for how in (search.FOUND, search.CLIENT))
    if len(limited) > len(found):
        return Capacity(stats.interval(limited[searched.CAPACITY].to_list()), bound=True)
    if len(found) == 1:
        # A single search has an interval of its own.
        rate, low, high = found.select("^capacity(_low|_high)?_rps$").row(0)
        return Capacity(Interval(1, rate, low, high))
    if len(found):
        return Capacity(stats.interval(found[searched.CAPACITY].to_list()))
    reason = ends["reason"][0] if len(ends) else "there was no search"
    answered, late = (probes.filter(pl.col("over") == over)[RATE] for over in (False, True))
    if len(answered) and len(late):
        low, high = map(phrases.number, sorted((answered.max(), late.min())))
        reason += f"; the change from in time to late lies between {low} and {high}"
    return Capacity(reason=reason)


def _median(points: pl.DataFrame, quantity: Quantity) -> float | None:
    found = by_trial.values(points, quantity, ["server"])
    return found[quantity.name].median() if len(found) else None


def why(held: Experiment, row: Row) -> str:
    """Return the server's limit at its capacity, in a phrase with the number that shows it."""
    over = held.probes.filter(pl.col("over"), ~pl.col("client_limited"), server=row.server)
    if over.is_empty():
        return "unknown"
    used = (over["server_cpu_ns"] / over["duration_us"] / 1e3).median()
    overflows = over["server_listen_overflows"].sum()
    if used is not None and used >= limits.USED_UP:
        return f"its CPU, of which it used {phrases.percent(min(1, used))} %"
    queue = f"; its queue overflowed {phrases.number(overflows)} times" if overflows else ""
    share = "unknown" if used is None else f"{phrases.percent(used)} %"
    return f"not its CPU, of which it used {share}, but what it waits for{queue}"


def verdict(held: Experiment, made: Sequence[Row]) -> str:
    """Return the card's result for its subject, the first of the rows, in one sentence."""
    subject = made[0]
    if subject.failed:
        # The first failed check; the card lists all of them below.
        reason = f": {subject.reason.splitlines()[0].split('; ')[0]}" if subject.reason else ""
        return f"{subject.title} was not measured: {subject.outcome}{reason}."
    if not subject.counts:
        return f"No result for {subject.title}: {_busy(held)}."
    what = "reply" if measure_design.searches(held.name) else ECHO
    cost = subject.cost
    if not cost.estimate:
        return (
            f"The cost of {'a' if what != ECHO else 'an'} {what} of {subject.title} is unknown: at "
            f"{_rate(held)} it answered nothing, or its connections were not open in time. "
            f"{capacity_sentence(held, subject)}"
        )
    others = [
        f"{row.title} {marked(row, phrases.brackets(row.cost, 1))}"
        for row in made[1:] if row.cost.estimate is not None
    ]  # fmt: skip
    compared = f"; {', '.join(others)}" if others else ""
    few = "" if subject.rounds > 2 else " Too few rounds for an interval."
    return (
        f"{subject.title} takes {phrases.brackets(cost, 1)} µs of CPU for each {what} at "
        f"{_rate(held)}, {phrases.number(1e6 / cost.estimate)} for each CPU-second{compared}. "
        f"{capacity_sentence(held, subject)}{few}"
    )


def _rate(held: Experiment) -> str:
    of = "requests" if measure_design.searches(held.name) else "messages"
    return f"{phrases.number(common_rps(held))} {of} a second"


def marked(row: Row, number: str) -> str:
    """Return a server's number, in parentheses if it is of points that do not count."""
    return number if row.counts or number == "–" else f"({number})"


def _busy(held: Experiment) -> str:
    others = other_work(held)
    share = f", {phrases.percent(others)} % of its CPUs by other work" if others else ""
    return f"the machine was busy{share}" if others and others > BUSY else (
        "the load generator was the limit at every rate"
    )  # fmt: skip


def capacity_sentence(held: Experiment, row: Row) -> str:
    """Return a sentence on the server's capacity, or on the connections that it held."""
    if not measure_design.searches(held.name):
        asked = phrases.number(held.points["connections"].max())
        paces = (f"opened {UNDER_WAY} at a time", "opened at 1,000 a second")
        held_of = [
            f"{phrases.number(value)} of {asked} {how}"
            for value, how in zip(row.values, paces)
            if value is not None
        ]
        return f"Connections held: {phrases.enumeration(held_of)}." if held_of else ""
    found = row.capacity
    if found.rate.estimate is None:
        return f"Its capacity was not found: {found.reason}."
    if found.bound:
        most = phrases.number(found.rate.estimate)
        return (
            f"Its capacity is more than {most} requests a second, the most that this client offers."
        )
    return (
        f"Its capacity is {phrases.brackets(found.rate)} requests a second; what limits it: "
        f"{why(held, row)}."
    )


def other_work(held: Experiment) -> float | None:
    """Return the share of the CPUs that other work took while load was offered; None if unknown.

    The median over trials of the share at the rate at which it was highest.
    """
    if held.samples.is_empty() or not held.trials["cpus"].count():
        return None
    cpus = held.trials["cpus"].drop_nulls()[0]
    worst = [
        limits.others(trial, cpus)["others"].max() or 0
        for trial in held.samples.partition_by("server", "variant", "n")
    ]
    return statistics.median(worst)


def facts(held: Experiment, records: Sequence[Mapping], server: Server) -> list[tuple[str, str]]:
    """Return names and sentences on one server's connections, in the order of the card."""
    trials, points, samples = (
        frame.filter(pl.col("server") == server.name)
        for frame in (held.trials, held.points, held.samples)
    )
    known = [
        ("Listen backlog", _backlog(trials, points, samples)),
        ("Readiness mechanism", _readiness(records)),
    ]
    return [(name, text) for name, text in known if text]


def _backlog(trials: pl.DataFrame, points: pl.DataFrame, samples: pl.DataFrame) -> str:
    asked = trials["backlog"].max() if "backlog" in trials.columns else None
    granted = samples["accept_queue_limit"].max()
    said = "the experiment sets none" if asked is None else f"requested {phrases.number(asked)}"
    said += (
        ", the kernel's value was not read" if granted is None
        else f", the kernel has {phrases.number(granted)}"
    )  # fmt: skip
    if points.is_empty():
        return said
    highest = points.filter(pl.col(RATE) == pl.col(RATE).max())
    overflows = highest["server_listen_overflows"].median()
    longest = points["accept_queue_connections_max"].max()
    if overflows is not None:
        rate = phrases.number(highest[RATE][0])
        said += f"; {phrases.number(overflows)} overflows at {rate} a second"
    if longest is None:
        return said
    return f"{said}; samples saw at most {phrases.number(longest)} waiting"


def _readiness(records: Sequence[Mapping]) -> str:
    checks = (check for record in records for check in record.get("conformance") or [])
    check = next((check for check in checks if check["name"].startswith(WAITS)), None)
    if check is None:
        return ""
    seen = "seen in its idle threads" if check["ok"] else f"but {check['seen']}"
    return f"{check['name'].removeprefix(WAITS)}, {seen}"
