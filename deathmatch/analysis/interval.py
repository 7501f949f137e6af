"""An interval: the one type in which a statistic over trials goes from module to module."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Interval:
    """An estimate from so many trials, with the interval from `low` to `high` that it lies in.

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

    @property
    def side_of_zero(self) -> int:
        """1 or -1 where the interval of a difference lies wholly on that side of 0, else 0."""
        if self.low is None:
            return 0
        return int(self.low > 0) - int(self.high < 0)


NO_TRIAL = Interval()
"""The interval of what was not measured."""
