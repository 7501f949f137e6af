"""What a load generator is to the rest of the study: the Protocol that each implements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    import polars as pl

# From the start of a client's process to its first connection, generously: a few exec(2).
START_UP_S = 0.04

# A report's fields, by the column of `points` that each fills; None where it is undefined.
Fields = dict[str, int | float | str | None]


Report = TypeVar("Report")


class LoadGenerator(Protocol[Report]):
    """One load generator; `Report` is what one rate left, its own type, opaque to all others.

    `load` is the experiment's table of that name, whose keys `clients/<name>/client.toml` explains.
    Rates are in requests (or messages) per second of all connections, durations in seconds; names
    of fields and columns end in their unit. Only `read` and `compact` touch files, only those
    beside the log; nothing else has an effect.
    """

    # The columns that `parse` and `sampled` fill in `points`, in their order, with their types.
    columns: Mapping[str, Any]
    # Whether `seconds` has rows, so that the experiment's table of that name is not empty.
    has_seconds: bool
    # The column that counts the connections it began: with none, no load was offered.
    attempts: str
    # By what two datasets are compared: "reply_rate", "closed_loop" or "latency".
    headline: str

    def command(
        self, host: str, port: int, load: Mapping, rate_rps: int, duration_s: float
    ) -> list[str]:
        """Return the words that offer one rate; the first is the program's name.

        Where that program is, the host that runs it knows. 0 is a closed loop, where there is one.
        What it writes besides its output is in its working directory.
        """

    def time_limit_s(self, load: Mapping, duration_s: float) -> float:
        """Return after how many seconds a run of `command` has wedged and is to be killed."""

    def compact(self, log: Path, keep_events: bool) -> None:
        """Make what was written beside the log small enough to keep; do nothing if there is none.

        `log` has the output of `command`. With `keep_events`, single events stay too. Called once,
        after the rate was offered; `read` reads the result.
        """

    def read(self, log: Path) -> Report:
        """Return what a run left in and beside its log; an empty report if there is no log."""

    def merge(self, reports: Sequence[Report]) -> Report:
        """Return one report of what several clients offered to one server at the same time.

        At least one. Counts add up and histograms are added bin by bin; what is taken of them
        (quantiles, means, shares) is taken of the sums, never of the single results. What cannot
        be known of the whole, each module's `merge` says. Rates add up: the clients start together.
        """

    def parse(self, report: Report, duration_s: float) -> Fields:
        """Return every field of the report, named and typed as in `columns`.

        Raises errors.Truncated if the report is not whole.
        """

    def histogram(self, report: Report) -> pl.DataFrame:
        """Return the report's histograms, with the columns of histogram.SCHEMA; maybe no row."""

    def seconds(self, report: Report) -> pl.DataFrame:
        """Return a row for each quantity and second (SECONDS); no row if it does not tell."""

    def sampled(self, samples: pl.DataFrame, during: pl.DataFrame) -> Fields:
        """Return those fields that the kernel's samples tell, not the report; {} if none.

        `samples` are all of the trial (measure.sampler), `during` those while the rate was
        offered, which may be none: then every field is None.
        """

    def actual_rate_rps(self, fields: Fields, during: pl.DataFrame, spec: Mapping) -> float | None:
        """Return the mean rate that was really offered in the `duration_s` it had; None if unknown.

        `spec` is the trial's: `duration_s` and `load` are read.
        """

    def limited(self, fields: Fields, offered_rate_rps: int, actual_rate_rps: float | None) -> bool:
        """Return whether the client, not the server, limited the point.

        Each module says what limits its program, and at which share.
        """
