"""Costs of select, poll and epoll with idle connections, and the limit of select.

In: points and trials of the experiments readiness and select-overload. Out: costs by level of
idle connections as intervals, tables of system calls and of deaths, ratios between mechanisms.
"""

from dataclasses import dataclass

import polars as pl

from deathmatch.analysis import phrases, stats
from deathmatch.analysis.by_trial import counted, shared_rounds
from deathmatch.analysis.reply_rates import RATE, REPLY
from deathmatch.analysis.stats import NO_TRIAL, Interval
from deathmatch.quantities.definitions import CPU_PER_REPLY, DIED

IDLE = "idle_connections"
MECHANISMS = ["select", "poll", "epoll", "io_uring"]
# From this share of one CPU on, several requests share the cost of a wait.
SATURATED = 0.9
# A rate is served if at least this share of its requests has a reply.
_SERVED = 0.95


def steady_rate(points: pl.DataFrame) -> int:
    """Return the lowest rate of the open loop, in requests a second; 0 without one."""
    return points.filter(pl.col(RATE) > 0)[RATE].min() or 0


def steady_points(points: pl.DataFrame) -> pl.DataFrame:
    """Return the points at `steady_rate` that count and were served.

    Added columns: `cpu_us`, CPU_PER_REPLY; `saturated`, whether the server used SATURATED of a CPU.
    """
    rate = steady_rate(points)
    due = rate * pl.col("duration_us") / 1e6
    return (
        counted(points)
        .filter(pl.col(RATE) == rate, pl.col("replies") >= _SERVED * due)
        .with_columns(
            cpu_us=CPU_PER_REPLY.of_trial.of_point(),
            saturated=pl.col("server_cpu_ns") >= SATURATED * 1000 * pl.col("duration_us"),
        )
    )


@dataclass(frozen=True)
class Level:
    """The cost of so many idle connections to a runtime by one mechanism.

    `cost_us` is the server's CPU for a reply, `busy_percent` the median share of a CPU that it
    used. `per_idle_ns` and `step_ns` are the cost that one idle connection adds, compared with the
    lowest level and with the level below; without trials at the lowest level.
    """

    title: str
    mechanism: str
    idle: int
    cost_us: Interval = NO_TRIAL
    per_idle_ns: Interval = NO_TRIAL
    step_ns: Interval = NO_TRIAL
    busy_percent: float = 0.0


def cost_levels(steady: pl.DataFrame) -> list[Level]:
    """Return each level of each runtime and mechanism, of `steady_points`.

    Costs are over the rounds that all levels have, differences over those that both levels have.
    """
    shared = shared_rounds(steady, ["title", "readiness", IDLE])
    used = 100 * (pl.col("server_cpu_ns") / (1000 * pl.col("duration_us"))).median()
    levels = []
    for (title, mechanism), mine in steady.group_by("title", "readiness", maintain_order=True):
        busy = dict(mine.group_by(IDLE, maintain_order=True).agg(used).rows())
        rises = {rise.level: rise for rise in stats.steps(mine, IDLE, "cpu_us")}
        compared = shared.filter(title=title, readiness=mechanism)
        for row in stats.summarise(compared, [IDLE], "cpu_us").sort(IDLE).to_dicts():
            idle, cost = row[IDLE], Interval.from_row(row)
            rise = rises.get(idle, stats.Rise(idle))
            in_ns = rise.per_unit.scaled(1000), rise.step.scaled(1000)
            levels.append(Level(title, mechanism, idle, cost, *in_ns, busy[idle]))
    return levels


def at_level(levels: list[Level], title: str, mechanism: str, idle: int) -> Level:
    """Return one level of `cost_levels`; without trials if it was not measured."""
    none = Level(title, mechanism, idle)
    wanted = (title, mechanism, idle)
    return next((at for at in levels if (at.title, at.mechanism, at.idle) == wanted), none)


def most_idle_with_cpu_left(levels: list[Level], title: str, mechanism: str) -> int:
    """Return the most idle connections at which the server used less than SATURATED of a CPU."""
    return max(
        (
            level.idle
            for level in levels
            if (level.title, level.mechanism) == (title, mechanism)
            and level.busy_percent < 100 * SATURATED
        ),
        default=0,
    )


def cost_table(levels: list[Level]) -> pl.DataFrame:
    """Return `cost_levels` as a table: its intervals in brackets, sorted by runtime and mechanism.

    Columns: title, readiness, IDLE, n (trials), cost, per_idle, step, busy (%).
    """
    places = {mechanism: place for place, mechanism in enumerate(MECHANISMS)}
    ordered = sorted(levels, key=lambda at: (at.title, places.get(at.mechanism, 9), at.idle))
    return pl.DataFrame([
        {
            "title": level.title,
            "readiness": level.mechanism,
            IDLE: level.idle,
            "n": level.cost_us.trials,
            "cost": phrases.brackets(level.cost_us),
            "per_idle": phrases.brackets(level.per_idle_ns) if level.per_idle_ns.trials else None,
            "step": phrases.brackets(level.step_ns) if level.step_ns.trials else None,
            "busy": level.busy_percent,
        }
        for level in ordered
    ])  # fmt: skip


def cost_changes(levels: list[Level]) -> tuple[list[Level], list[Level], list[Level]]:
    """Return the levels of epoll and io_uring with a known change: all, those below 0, those above.

    The interval of the cost that an idle connection adds is wholly below or above 0.
    """
    known = [
        level for level in levels
        if level.mechanism in ("epoll", "io_uring") and level.per_idle_ns.trials
    ]  # fmt: skip
    below = [level for level in known if (level.per_idle_ns.high or 0) < 0]
    above = [level for level in known if (level.per_idle_ns.low or 0) > 0]
    return known, below, above


def below_by_chance(changes: list[Level]) -> float:
    """Return how many of `cost_changes` have a range of trials below 0 by chance alone."""
    trials = (max(2, level.per_idle_ns.trials) for level in changes)
    return sum((1 - stats.range_coverage(count)) / 2 for count in trials)


def system_calls(trials: pl.DataFrame) -> pl.DataFrame:
    """Return system calls for each reply with the fewest idle connections, and with the most.

    Columns: title, readiness, syscalls_per_reply, waits_per_reply, IDLE (the most), calls_idle,
    waits_idle.
    """
    return (
        trials.drop_nulls("syscalls_per_reply")
        .sort(IDLE)
        .group_by("title", "readiness", maintain_order=True)
        .agg(
            pl.first("syscalls_per_reply", "waits_per_reply"),
            pl.last(IDLE),
            pl.last("syscalls_per_reply").alias("calls_idle"),
            pl.last("waits_per_reply").alias("waits_idle"),
        )
        .sort("title", "readiness")
    )


def deaths_by_rate(crash: pl.DataFrame) -> pl.DataFrame:
    """Return the rates at which servers died, and in how many trials.

    Columns: title, readiness, the rate, trials, died, and the median reply rate.
    """
    return (
        crash.group_by("title", "readiness", RATE, maintain_order=True)
        .agg(pl.len().alias("trials"), DIED.sum().alias("died"), pl.col(REPLY).median())
        .filter(pl.col("died") > 0)
    )


def deaths(crash: pl.DataFrame) -> pl.DataFrame:
    """Return how trials of the crash ended: a row a server and mechanism.

    Columns: title, readiness, trials, died_trials, from_rps (the lowest rate at which one
    died), descriptors (the most seen), and the client's errors at the rates at which it died.
    """
    errors = ("errors_connection_refused", "errors_connection_reset", "errors_client_timeout")
    return (
        crash.with_columns(dead=DIED)
        .group_by("title", "readiness", maintain_order=True)
        .agg(
            pl.col("n").n_unique().cast(pl.Int64).alias("trials"),
            pl.col("n").filter("dead").n_unique().cast(pl.Int64).alias("died_trials"),
            pl.col(RATE).filter("dead").min().alias("from_rps"),
            pl.col("server_descriptors_max").max().alias("descriptors"),
            *(pl.col(column).filter("dead").sum().alias(column) for column in errors),
        )
        .sort("title", "readiness")
    )
