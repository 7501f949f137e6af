"""What the trials of `deathmatch compare` show: a row for each quantity, and the verdict in words.

In: the points of each trial, with its block, side and place. Out: a frame with the columns of ROWS,
and sentences. `paired` has the statistics.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import polars as pl

from deathmatch.analysis import paired, phrases
from deathmatch.analysis.by_trial import counted
from deathmatch.analysis.paired import Effect
from deathmatch.analysis.reply_rates import RATE
from deathmatch.analysis.trial_tests import ERROR, POWER
from deathmatch.quantities.definitions import CPU_PER_REPLY, PEAK, QUANTITIES

# Quantities of each offered rate, and of a whole trial.
AT_RATE = (
    CPU_PER_REPLY.name,
    "response_time_mean_us",
    "message_latency_p50_us",
    "message_latency_p95_us",
    "reply_rate_rps",
    "context_switches_per_reply",
)
OF_TRIAL = (PEAK, "server_rss_bytes")
STATISTICS = AT_RATE + OF_TRIAL
LEVEL = (
    f"Intervals: Student's t over blocks, {1 - ERROR:.0%} for each row by itself. The verdict is "
    "about the first row, chosen before anything was measured."
)

_EFFECT = {"ratio": pl.Float64, "low": pl.Float64, "high": pl.Float64}
ROWS = {
    "statistic": pl.String,
    RATE: pl.Int64,  # null for a statistic of the whole trial
    "a_median": pl.Float64,
    "b_median": pl.Float64,
    **paired.EFFECT,
    **{f"aa_{name}": kind for name, kind in _EFFECT.items()},  # A against A: 1, but for chance
    **{f"bb_{name}": kind for name, kind in _EFFECT.items()},
}


@dataclass(frozen=True)
class Measured:
    """A trial of a comparison with its points, a frame of the table `points`."""

    block: int
    place: int
    side: str
    points: pl.DataFrame


def rows(trials: Sequence[Measured], seed: int, first: str) -> pl.DataFrame:
    """Return a row with ROWS for each statistic that some trial has, rate by rate.

    Those of the statistic `first` come first, and are there without a value too. Points at which
    the client was the limit, that break a law, or whose report is truncated, are left out, as
    everywhere; `seed` draws the signs of A against A.
    """
    rates = sorted({rate for trial in trials for rate in trial.points[RATE]})
    wanted = [(name, rate) for name in AT_RATE for rate in rates]
    wanted += [(name, None) for name in OF_TRIAL]
    wanted.sort(key=lambda pair: pair[0] != first)
    all_rows = [_row(trials, name, rate, seed) for name, rate in wanted]
    known = [row for row in all_rows if row["a_median"] is not None or row["b_median"] is not None]
    return pl.DataFrame(known or all_rows[:1], schema=ROWS)


def _row(trials: Sequence[Measured], statistic: str, rate: int | None, seed: int) -> dict:
    values = pl.DataFrame(
        [
            {"block": trial.block, "place": trial.place, "side": trial.side, "value": value}
            for trial in trials
            if (value := _value(trial.points, statistic, rate)) is not None
        ],
        schema=paired.VALUES,
    )
    medians = {side: values.filter(side=side)["value"].median() for side in paired.SIDES}
    nulls = {
        f"{side.lower() * 2}_{name}": getattr(null, name)
        for side in paired.SIDES
        for null in [paired.effect(paired.null_contrasts(values, side, seed))]
        for name in _EFFECT
    }
    return {
        "statistic": statistic, RATE: rate, "a_median": medians["A"], "b_median": medians["B"],
        **asdict(paired.effect(paired.contrasts(values))), **nulls,
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


def nulls(row: dict) -> str:
    """Return what each variant against itself comes to, in a sentence."""
    parts = [
        f"{side} / {side} {row[f'{key}_ratio']:.3f} ({row[f'{key}_low']:.3f} to "
        f"{row[f'{key}_high']:.3f})"
        for side, key in (("A", "aa"), ("B", "bb"))
        if row[f"{key}_low"] is not None
    ]
    return f"Of the same trials: {', '.join(parts)}." if parts else ""


def verdict(row: dict) -> str:
    """Return in a sentence or two what the row shows, with its interval and n."""
    title = QUANTITIES[row["statistic"]].title
    at = "" if row[RATE] is None else f" at {phrases.number(row[RATE])} requests a second"
    effect = Effect(**{name: row[name] for name in paired.EFFECT})
    if effect.ratio is None:
        return f"Nothing can be said of {title}{at}: no block has a value in all four trials."
    if effect.low is None:
        return f"Nothing can be said of {title}{at}: one block alone has no interval."
    interval = f"interval {effect.low:.3f} to {effect.high:.3f}, n = {effect.blocks} blocks"
    if effect.shown:
        more = "more" if effect.ratio > 1 else "less"
        size = abs(effect.ratio - 1)
        difference = f"B has {size:.1%} {more} {title} than A{at}"
        return f"{difference} (B / A {effect.ratio:.3f}, {interval})."
    return (
        f"No difference of {title} shows{at} (B / A {effect.ratio:.3f}, {interval}). One of "
        f"{effect.detectable - 1:.1%} or more would have shown in {POWER:.0%} of such comparisons."
    )
