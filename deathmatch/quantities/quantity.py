"""What the definition of a quantity consists of.

A quantity is estimated in two steps: from the points of one trial to one number (`of_trial`), and
from the trials of a variant to their median with its interval (`deathmatch.analysis.stats`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import polars as pl

RATE = "offered_rate_rps"
REPLY = "reply_rate_offered_window_rps"

OVER_TRIALS = "median over trials"
"""The estimator over trials of every quantity."""


class Points(Enum):
    """Which points of a trial count."""

    VALID = "lawful, reported whole, and not limited by the client"
    COURSE = "the same, steady or not"
    ENDING = "the same, steady or not, reported whole or not"
    ALL = "all"


@dataclass(frozen=True)
class PerReply:
    """A counter's growth over replies: of one point, or of all points of a trial together.

    `scale` is from the counter's unit to that of the quantity.
    """

    counter: str
    scale: float = 1.0

    def __call__(self, points: pl.DataFrame) -> float | None:
        """Return the sum of the counter over the sum of replies; None without a reply."""
        known = points.drop_nulls([self.counter, "replies"])
        return self.value(known[self.counter].sum(), known["replies"].sum())

    def value(self, counted: float, replies: float) -> float | None:
        """Return what `counted` comes to for one reply; None without a reply."""
        return self.scale * counted / replies if replies else None

    def of_point(self, counter: str = "") -> pl.Expr:
        """Return the quantity of each point by itself; null without a reply.

        `counter` names another column with the same count.
        """
        replies = pl.col("replies")
        counted = pl.col(counter or self.counter)
        return pl.when(replies > 0).then(self.scale * counted / replies)


@dataclass(frozen=True)
class Mean:
    """The mean of a column over the points of a trial that have it."""

    column: str

    def __call__(self, points: pl.DataFrame) -> float | None:
        """Return the mean; None without a value, or without the column."""
        return points[self.column].drop_nulls().mean() if self.column in points.columns else None


@dataclass(frozen=True)
class Quantity:
    """One quantity. `name` is its key in claims.toml and in frames; `unit` is "" for pure numbers.

    `meaning` defines it in words, with its unit. `estimator` says how a trial's points give one
    number. `over_rates`: the number depends on which rates were offered, so that two variants are
    compared at the rates that both have; the others describe a sweep or its course as a whole.
    `whole_sweep`: a trial counts only if the point at its highest rate does. `points` says which
    points count.
    """

    name: str
    title: str
    unit: str
    meaning: str
    of_trial: Callable[[pl.DataFrame], float | None]
    estimator: str = ""
    over_rates: bool = True
    whole_sweep: bool = False
    points: Points = Points.VALID

    @property
    def heading(self) -> str:
        """Return "CPU per reply (µs)", as a table's column is headed."""
        title = self.title[:1].upper() + self.title[1:]
        return f"{title} ({self.unit})" if self.unit else title

    @property
    def definition(self) -> str:
        """Return what one number of a table is: "CPU per reply: …; median over trials"."""
        within = f"{self.meaning}, {self.estimator}" if self.estimator else self.meaning
        return f"{self.title[:1].upper()}{self.title[1:]}: {within}; {OVER_TRIALS}"
