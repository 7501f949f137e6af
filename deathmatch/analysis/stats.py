"""Statistics over trials: medians with bootstrap intervals, ratios within a block, quantiles, and
the cost of a factor's levels.

In: numbers of trials, or frames with a row a trial. Out: an `Interval`, or a frame with the columns
of INTERVAL. The trial is the unit of repetition: each trial is summarised to one number first.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
import polars as pl

CONFIDENCE = 0.95
RESAMPLES = 2000
SEED = 2009

INTERVAL = {"trials": pl.Int64, "median": pl.Float64, "low": pl.Float64, "high": pl.Float64}


@dataclass(frozen=True)
class Interval:
    """An estimate from so many trials, with its interval from `low` to `high`.

    Estimate and interval are of one kind: the median with its bootstrap interval
    (`stats.interval`), or the mean with Student's (`trial_tests`). `estimate` is None without a
    trial; `low` and `high` are None where trials are too few.
    """

    trials: int = 0
    estimate: float | None = None
    low: float | None = None
    high: float | None = None

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> "Interval":
        """Return the interval in a row of a frame that has the columns of `stats.INTERVAL`."""
        return cls(row["trials"], row["median"], row["low"], row["high"])

    @property
    def row(self) -> dict[str, float | None]:
        """Return the columns that `stats.INTERVAL` has in a frame, of a median."""
        ends = {"low": self.low, "high": self.high}
        return {"trials": self.trials, "median": self.estimate} | ends

    def scaled(self, factor: float) -> "Interval":
        """Return the interval in another unit."""
        numbers = (self.estimate, self.low, self.high)
        return Interval(self.trials, *(None if n is None else factor * n for n in numbers))


NO_TRIAL = Interval()
"""The interval without a measurement."""


def interval(values: list[float]) -> Interval:
    """Return the number of trials, their median and its bootstrap interval.

    The interval is the percentile bootstrap (Efron 1979) of the median at
    CONFIDENCE, from a fixed seed; with fewer than two trials low and high are None. With three,
    it is as wide as their range.
    """
    known = np.asarray([value for value in values if value is not None], dtype=float)
    if len(known) == 0:
        return NO_TRIAL
    middle = float(np.median(known))
    if len(known) == 1:
        return Interval(1, middle)
    if np.ptp(known) == 0:
        return Interval(len(known), middle, middle, middle)
    return Interval(len(known), middle, *_bounds(tuple(known)))


@lru_cache(maxsize=10_000)
def _bounds(values: tuple[float, ...]) -> tuple[float, float]:
    """Return the ends of the percentile bootstrap, as `scipy.stats.bootstrap` does, but faster.

    scipy checks its arguments at length, and a paper has thousands of intervals.
    """
    drawn = np.sort(np.asarray(values)[_resamples(len(values))], axis=-1)
    middle = len(values) // 2
    medians = drawn[:, middle] if len(values) % 2 else drawn[:, middle - 1 : middle + 1].mean(1)
    # The quantiles of type 7 of Hyndman and Fan, in the order of scipy.stats.quantile's operations.
    tail = (1 - CONFIDENCE) / 2
    shares = np.asarray([tail, 1 - tail])
    upper = shares * RESAMPLES + (1 - shares)
    weights, medians = upper % 1, np.sort(medians)
    places = upper.astype(int)
    low, high = (1 - weights) * medians[places - 1] + weights * medians[places]
    return float(low), float(high)


@cache
def _resamples(count: int) -> np.ndarray:
    """Return RESAMPLES rows of so many indices, drawn with replacement."""
    return np.random.default_rng(SEED).integers(0, count, (RESAMPLES, count))


def range_coverage(trials: int) -> float:
    """Return the probability that the range of so many trials contains the true median.

    1 - 2^(1 - n) for any distribution: the range misses if all trials fall on one side (Thompson
    1936, Annals of Mathematical Statistics 7).
    """
    return 1 - 2.0 ** (1 - trials)


def summarise(frame: pl.DataFrame, by: list[str], column: str) -> pl.DataFrame:
    """Return for each group of `by` the interval of `column`: columns `by` and INTERVAL's."""
    groups = frame.group_by(by, maintain_order=True).agg(pl.col(column))
    rows = [
        {name: row[name] for name in by} | interval(row[column]).row for row in groups.to_dicts()
    ]
    return pl.DataFrame(rows, schema={name: frame.schema[name] for name in by} | INTERVAL)


def ratios(frame: pl.DataFrame, above: pl.Expr, below: pl.Expr, column: str) -> list[float]:
    """Return `column`'s ratio between two selections in each round `n` that has both.

    So the machine's drift cancels. A round that lacks one side or has zero below is left out. Each
    selection must hold at most one row per round (ValueError).
    """
    sides = [frame.filter(which).select("n", column) for which in (above, below)]
    if any(side["n"].n_unique() != len(side) for side in sides):
        raise ValueError("a selection holds several rows of one block")
    both = sides[0].join(sides[1], on="n", suffix="_below").drop_nulls()
    both = both.filter(pl.col(f"{column}_below") != 0)
    return (both[column] / both[f"{column}_below"]).to_list()


def ratio(frame: pl.DataFrame, above: pl.Expr, below: pl.Expr, column: str) -> Interval:
    """Return the interval of `column`'s ratio between two selections, as `ratios` has it."""
    return interval(ratios(frame, above, below, column))


@dataclass(frozen=True)
class Rise:
    """The added cost of a factor's level over lower ones, for each unit of the factor.

    `per_unit` is the interval of (cost at the level - cost at the lowest) / (level - lowest),
    `step` the same against the level below.
    """

    level: float
    per_unit: Interval = NO_TRIAL
    step: Interval = NO_TRIAL


def steps(frame: pl.DataFrame, level: str, column: str) -> list[Rise]:
    """Return the rise of each level above the lowest, paired by block; none of fewer than two.

    A block is a trial's number. No shape of the curve is assumed. Blocks that lack a side are left
    out; each block must hold at most one row per level (ValueError).
    """
    if frame.select(pl.struct(level, "n").is_duplicated().any()).item():
        raise ValueError("a level holds several rows of one block")
    known = frame.drop_nulls(column)
    levels = known[level].unique().sort().to_list()
    cost = {at: dict(known.filter(pl.col(level) == at).select("n", column).rows()) for at in levels}

    def rise(at: float, below: float) -> Interval:
        both = [n for n in cost[at] if n in cost[below]]
        return interval([(cost[at][n] - cost[below][n]) / (at - below) for n in both])

    return [
        Rise(at, rise(at, levels[0]), rise(at, below)) for below, at in itertools.pairwise(levels)
    ]
