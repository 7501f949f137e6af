"""The definition of a quantity: its parts, and the answers and samples that it counts.

A quantity is estimated in two steps: from the points of one trial to one number (`of_trial`), and
from the trials of a variant to their median with its interval (`deathmatch.analysis.stats`). Points
of the tables count every answer; `of_experiment` keeps those with the status and the length that
the experiment's checks expect.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import Enum
from functools import cache

import polars as pl

from deathmatch.load import registry
from deathmatch.plan import files

RATE = "offered_rate_rps"
REPLY = "reply_rate_offered_window_rps"
# Replies a request offered: fewer are lost at the edges of the offered window.
ALL_ANSWERED = 0.97
TOP = "top_rate_rps"
"""The most demanding rate of a point's variant: 0, the closed loop, else the highest within the
testbed's limit."""

WRONG = "wrong_answers"
"""The column of the wrong answers of a point, of every class together."""

DRAIN = "drain_us"
"""The column of the time for which the client of a point waited for answers after its last send."""

# A bootstrap is too narrow for a quantile in the tail.
TAIL_CONFIDENCE = 0.99

OVER_TRIALS = "median over trials"
"""The estimator over trials of every quantity."""


class Points(Enum):
    """Which points of a trial count."""

    VALID = "lawful, reported whole, and not limited by client or testbed"
    STEADY = "the same, of runs that neither drifted nor jumped"
    ENDING = "lawful, reported whole or not, and not limited by client or testbed"
    TRIALS = "no points: the trials themselves, also those without a point"
    SEARCHES = "no points: the ends of searches, of which those count that found the capacity"


class Kind(Enum):
    """The values that a quantity can have, which decide the test that compares trials."""

    POSITIVE = "above 0"
    SHARE = "from 0 to 1"
    COUNT = "a count of events"
    OUTCOME = "1 where something happened in a trial, else 0"


class OfTrial:
    """The estimator of one number from the points of a trial, alone or in a query of many."""

    def aggregate(self, columns: Collection[str]) -> pl.Expr:
        """Return the number as an aggregate of points with these columns; null without one."""
        raise NotImplementedError

    def __call__(self, points: pl.DataFrame) -> float | None:
        """Return the number of one trial's points; None without one."""
        return points.select(self.aggregate(points.columns)).item()


@dataclass(frozen=True)
class Aggregate(OfTrial):
    """A number by an expression, or by a function of the columns that returns one."""

    by: pl.Expr | Callable[[Collection[str]], pl.Expr]

    def aggregate(self, columns: Collection[str]) -> pl.Expr:
        """Return the expression."""
        return self.by if isinstance(self.by, pl.Expr) else self.by(columns)


@dataclass(frozen=True)
class Quotient(OfTrial):
    """A count over replies, or over another count: of one point, or of all of a trial together.

    `scale` is from the counts' unit to that of the quantity.
    """

    counter: str
    scale: float = 1.0
    over: str = "replies"

    def aggregate(self, columns: Collection[str]) -> pl.Expr:
        """Return the sum of the one count over that of the other; null where that is 0."""
        both = pl.col(self.counter).is_not_null() & pl.col(self.over).is_not_null()
        counted, over = (pl.col(name).filter(both).sum() for name in (self.counter, self.over))
        return pl.when(over != 0).then(self.scale * counted / over)

    def of_point(self) -> pl.Expr:
        """Return the quantity of each point by itself; null over 0."""
        over = pl.col(self.over)
        return pl.when(over > 0).then(self.scale * pl.col(self.counter) / over)


@dataclass(frozen=True)
class Mean(OfTrial):
    """The mean of a column over the points of a trial that have it.

    `scale` is from the column's unit to that of the quantity.
    """

    column: str
    scale: float = 1.0

    def aggregate(self, columns: Collection[str]) -> pl.Expr:
        """Return the mean; null without a value, or without the column."""
        known = self.column in columns
        return self.scale * pl.col(self.column).mean() if known else pl.lit(None, pl.Float64)

    def of_point(self) -> pl.Expr:
        """Return the quantity of each point by itself."""
        return self.scale * pl.col(self.column)


@dataclass(frozen=True)
class Quantity:
    """One quantity. `name` is its key in claims.toml and in frames; `unit` is "" for pure numbers.

    `meaning` defines it in words, with its unit. `estimator` says how a trial's points give one
    number. `of_histogram`: the quantity of the table `times` that its column comes from, if points
    lack it; else empty. `over_rates`: the number depends on which rates were offered, so two
    variants are compared at the rates that both have; other quantities describe a whole sweep.
    `whole_sweep`: a trial counts only if the point at its highest rate does. `points`: the points
    that count. `kind`: the possible values. `step` returns the last recorded digit of a trial, in
    `unit`, if it is coarse. `higher_is_better`: whether the server with the higher value is better.
    """

    name: str
    title: str
    unit: str
    meaning: str
    of_trial: OfTrial
    estimator: str = ""
    over_rates: bool = True
    whole_sweep: bool = False
    points: Points = Points.VALID
    of_histogram: str = ""
    kind: Kind = Kind.POSITIVE
    step: Callable[[pl.DataFrame], float] | None = None
    higher_is_better: bool = False

    def number(self, points: pl.DataFrame) -> pl.Expr:
        """Return the number of a trial of these points as an aggregate, under its name."""
        return self.of_trial.aggregate(points.columns).cast(pl.Float64).alias(self.name)

    @property
    def heading(self) -> str:
        """Return "CPU per reply (µs)", the heading of a table's column."""
        title = self.title[:1].upper() + self.title[1:]
        return f"{title} ({self.unit})" if self.unit else title

    @property
    def definition(self) -> str:
        """Return the definition of a table's number: "CPU per reply: …; median over trials"."""
        within = f"{self.meaning}, {self.estimator}" if self.estimator else self.meaning
        return f"{self.title[:1].upper()}{self.title[1:]}: {within}; {OVER_TRIALS}"


def of_experiment(points: pl.DataFrame, experiment: str) -> pl.DataFrame:
    """Return an experiment's points for quantities: `only_good`, with DRAIN if its load has one.

    DRAIN is in microseconds.
    """
    load = files.experiment(experiment).load_as_written
    if "drain_s" not in load:
        return only_good(points)
    return only_good(points).with_columns(pl.lit(1e6 * load["drain_s"]).alias(DRAIN))


def only_good(points: pl.DataFrame) -> pl.DataFrame:
    """Return points whose `replies` and reply rate are those of good answers, with WRONG.

    The rate is that of all answers times the share of good ones, as a load generator does not
    count wrong answers by interval. A point whose report is not whole has null in all three.
    Points without replies, of a store, are returned as they are.
    """
    if "replies" not in points.columns:
        return points
    generators = [registry.generator(name) for name in registry.names()]
    among = _sum(points, {name for each in generators for name in each.wrong_replies})
    besides = _sum(points, {name for each in generators for name in each.wrong_besides})
    good = pl.col("replies") - among
    share = pl.when(pl.col("replies") > 0).then(good / pl.col("replies")).otherwise(1.0)
    counted = points.with_columns((among + besides).alias(WRONG))
    # Where all answers are good, the rate stays what it was, to its last digit.
    slower = pl.when(among > 0).then(pl.col(REPLY) * share).otherwise(pl.col(REPLY)).alias(REPLY)
    return counted.with_columns(good.alias("replies"), *([slower] if REPLY in points else []))


def _sum(points: pl.DataFrame, names: set[str]) -> pl.Expr:
    """Return the sum of those columns that are there; null where the report is not whole."""
    known = [pl.col(name).fill_null(0) for name in sorted(names & set(points.columns))]
    return pl.when(pl.col("replies").is_not_null()).then(pl.sum_horizontal(pl.lit(0), *known))


@cache
def needed_samples(quantile: float) -> int:
    """Return how many samples a quantile needs to be reported: 662 for the 99th percentile.

    With so many, at least two lie beyond it at TAIL_CONFIDENCE, so the second from the end bounds
    it: the number beyond is binomial for any distribution (David and Nagaraja 2003, Order
    Statistics, 7.1). This is MLPerf Inference's rule of early stopping (2021).
    """
    from scipy.stats import nbinom  # a trial does not wait for it

    return 2 + int(nbinom.ppf(TAIL_CONFIDENCE, 2, min(quantile, 1 - quantile)))
