"""Two variants compared in blocks of four trials: ABBA or BAAB, chosen at random.

In: the points of each trial, with its block, its side and its place in the block. Out: a row for
each quantity with the ratio B / A, its interval, and the difference that so many blocks can detect;
the verdict in words.

A linear drift of the machine cancels within a block; the random order turns the rest of any other
drift into noise instead of an effect (Cox 1951, Biometrika 38, on trend-resistant orders).
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from deathmatch.analysis import phrases, trial_tests
from deathmatch.analysis.by_trial import counted
from deathmatch.analysis.reply_rates import RATE
from deathmatch.analysis.trial_tests import ERROR, POWER
from deathmatch.quantities.definitions import CPU_PER_REPLY, QUANTITIES

ORDERS = ("ABBA", "BAAB")
SIDES = ("A", "B")

VALUES = {"block": pl.Int64, "place": pl.Int64, "side": pl.String, "value": pl.Float64}
EFFECT = {"blocks": pl.Int64} | dict.fromkeys(("ratio", "low", "high", "detectable"), pl.Float64)

# Quantities of each offered rate, and of a whole trial.
AT_RATE = (
    CPU_PER_REPLY.name,
    "response_time_mean_us",
    "message_latency_p50_us",
    "message_latency_p95_us",
    "reply_rate_rps",
    "context_switches_per_reply",
)
OF_TRIAL = ("server_rss_bytes",)
STATISTICS = AT_RATE + OF_TRIAL
LEVEL = (
    f"Intervals: Student's t over blocks, {1 - ERROR:.0%} for each row by itself. The verdict is "
    "about the first row, chosen before anything was measured."
)

ROWS = {
    "statistic": pl.String,
    RATE: pl.Int64,  # null for a statistic of the whole trial
    "a_median": pl.Float64,
    "b_median": pl.Float64,
    **EFFECT,
}


@dataclass(frozen=True)
class Measured:
    """A trial of a comparison with its points, a frame of the table `points`."""

    block: int
    place: int
    side: str
    points: pl.DataFrame


def order(seed: int, block: int) -> str:
    """Return a block's order, "ABBA" or "BAAB"; blocks are numbered from 1."""
    return random.Random(f"{seed}/{block}").choice(ORDERS)


def effect(ratios: Sequence[float]) -> dict[str, float | None]:
    """Return the columns of EFFECT of ratios, one a block.

    `ratio` is their geometric mean, with Student's interval from `low` to `high` at ERROR.
    `detectable` is the ratio above 1 that so many blocks of this spread detect in POWER of cases.
    All but `blocks` and `ratio` are None with fewer than two blocks, and `ratio` without any.
    """
    known, deviation = trial_tests.mean_interval(ratios, ERROR), trial_tests.spread(ratios)
    detectable = None
    if deviation is not None:
        detectable = math.exp(trial_tests.detectable(deviation, len(ratios)))
    numbers = (known.trials, known.estimate, known.low, known.high, detectable)
    return dict(zip(EFFECT, numbers))


def shows(known: dict) -> bool:
    """Return whether the interval of an `effect`, or of a row with its columns, excludes 1."""
    return known["low"] is not None and not known["low"] <= 1 <= known["high"]


def ratios(values: pl.DataFrame) -> list[float]:
    """Return each whole block's B / A: the square root of B * B / (A * A).

    `values` has the columns of VALUES. Blocks without all trials or with a value that is not
    positive are left out.
    """
    usable = values.filter(pl.col("value").is_finite() & (pl.col("value") > 0))
    found = []
    for block in usable.sort("block").partition_by("block", maintain_order=True):
        a, b = (block.filter(side=side)["value"].to_list() for side in SIDES)
        if len(a) == len(b) == 2:
            found.append(math.sqrt(math.prod(b) / math.prod(a)))
    return found


def rows(trials: Sequence[Measured], first: str) -> pl.DataFrame:
    """Return a row with ROWS for each statistic that some trial has, rate by rate.

    Rows of the statistic `first` come first, and are included without a value too. Points that do
    not count (`by_trial.counted`) are left out.
    """
    rates = sorted({rate for trial in trials for rate in trial.points[RATE]})
    wanted = [(name, rate) for name in AT_RATE for rate in rates]
    wanted += [(name, None) for name in OF_TRIAL]
    wanted.sort(key=lambda pair: pair[0] != first)
    all_rows = [_row(trials, name, rate) for name, rate in wanted]
    known = [row for row in all_rows if row["a_median"] is not None or row["b_median"] is not None]
    return pl.DataFrame(known or all_rows[:1], schema=ROWS)


def _row(trials: Sequence[Measured], statistic: str, rate: int | None) -> dict:
    values = pl.DataFrame(
        [
            {"block": trial.block, "place": trial.place, "side": trial.side, "value": value}
            for trial in trials
            if (value := _value(trial.points, statistic, rate)) is not None
        ],
        schema=VALUES,
    )
    medians = {side: values.filter(side=side)["value"].median() for side in SIDES}
    return {
        "statistic": statistic, RATE: rate, "a_median": medians["A"], "b_median": medians["B"],
        **effect(ratios(values)),
    }  # fmt: skip


def _value(points: pl.DataFrame, statistic: str, rate: int | None) -> float | None:
    valid = counted(points)
    if rate is not None:
        valid = valid.filter(pl.col(RATE) == rate)
    if valid.is_empty():
        return None
    value = QUANTITIES[statistic].of_trial(valid)
    return None if value is None else float(value)


def quantity(row: dict) -> str:
    """Return "CPU per reply at 500 req/s (µs)"."""
    quantity = QUANTITIES[row["statistic"]]
    at = "" if row[RATE] is None else f" at {phrases.number(row[RATE])} req/s"
    return replace(quantity, title=f"{quantity.title}{at}").heading


def worse_by(row: dict, share: float) -> bool:
    """Return whether B is worse than A by more than `share`, decided by the whole interval."""
    if row["low"] is None:
        return False
    if QUANTITIES[row["statistic"]].higher_is_better:
        return row["high"] < 1 - share
    return row["low"] > 1 + share


def left_out(trials: Sequence[Measured]) -> str:
    """Return how many points do not count, in a sentence."""
    points = pl.concat([trial.points for trial in trials])
    out = len(points) - len(counted(points))
    share = phrases.part(out, len(points))
    return f"{share} points do not count: the client was the limit, or a law is broken."


def verdict(row: dict) -> str:
    """Return the result of a row in a sentence or two, with its interval and n."""
    title = QUANTITIES[row["statistic"]].title
    at = "" if row[RATE] is None else f" at {phrases.number(row[RATE])} requests a second"
    if row["ratio"] is None:
        return f"No result for {title}{at}: no block has a value in all four trials."
    if row["low"] is None:
        return f"No result for {title}{at}: one block alone has no interval."
    interval = f"interval {row['low']:.3f} to {row['high']:.3f}, n = {row['blocks']} blocks"
    told = f"(B / A {row['ratio']:.3f}, {interval})"
    if shows(row):
        more = "more" if row["ratio"] > 1 else "less"
        return f"B has {abs(row['ratio'] - 1):.1%} {more} {title} than A{at} {told}."
    return (
        f"No difference in {title}{at} was found {told}. {POWER:.0%} of such comparisons would "
        f"have found one of {row['detectable'] - 1:.1%} or more."
    )
