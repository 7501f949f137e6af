"""The interface of a load generator to the rest of the study: the class that each extends.

The checks of every report are here, too: values fit their table, and numbers agree. Nothing checks
a report again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from deathmatch.errors import Truncated

if TYPE_CHECKING:
    import polars as pl

# From the start of a client's process to its first connection, generously: a few exec(2).
START_UP_S = 0.04

# In a command it stands for the project's folder on the client's host.
PROJECT = "{project}"

# A key of a load that is added to the experiment's: the body that each answer must have.
BODY = "body"
# The body for each of the varied values that the experiment `dynamic` asks for.
BODIES = "clients/httperf/values.bodies"
# The column with the first wrong answer that a client got: its status and beginning.
FIRST_WRONG = "first_wrong_answer"

# A report's fields, by the column of `points` that each fills; None where it is undefined.
Fields = dict[str, int | float | str | None]


# The greatest integer of a column.
MOST = 2**63 - 1

Report = TypeVar("Report")


class Timed(NamedTuple):
    """The times by which lateness is judged.

    `times` has `time_us` and `count` of the answers; `due` counts all that should have come, and
    `wrong` the answers with another status than expected.
    """

    times: pl.DataFrame
    due: int
    wrong: int = 0


@dataclass(frozen=True)
class Part:
    """The part of client number `index`, of `of` clients that share a load; ValueError if none.

    Connections and requests are dealt to the clients in turn: number k is of client k mod `of`, so
    that the shares add up, and differ by one at most.
    """

    index: int
    of: int

    def __post_init__(self) -> None:
        if not 0 <= self.index < self.of:
            raise ValueError(f"there is no client {self.index} among {self.of}, counted from 0")

    def share(self, count: int) -> int:
        """Return this client's share of `count` things."""
        return (count + self.of - 1 - self.index) // self.of

    def among(self, most: int) -> Part | None:
        """Return its part if the first `most` clients share the load; None if it is not of them."""
        of = min(self.of, most)
        return Part(self.index, of) if self.index < of else None


WHOLE = Part(0, 1)


def shared(
    part: Part, sources: Sequence[str], load: Mapping = MappingProxyType({}),
    escaped: Callable[[str], str] = str,
) -> list[str]:  # fmt: skip
    """Return the words with a program's part, its source addresses and the body of each answer.

    The body is there if the load has one, `escaped` in the program's way.
    """
    words = [] if part.of == 1 else [f"--client={part.index}/{part.of}"]
    if BODY in load:
        varied = load.get("values") == "varied"
        words += [f"--bodies={PROJECT}/{BODIES}" if varied else f"--body={escaped(load[BODY])}"]
    return words + ([f"--source={','.join(sources)}"] if sources else [])


def combined(
    parts: Sequence[Fields], how: Mapping[str, Callable[[Sequence], Any]] = MappingProxyType({})
) -> Fields:
    """Return the fields of several clients as those of one.

    `how` has a function of the known values for each field that is not their sum. A field that no
    client knows is None.
    """
    known = {name: [part[name] for part in parts if part[name] is not None] for name in parts[0]}
    return {name: how.get(name, sum)(values) if values else None for name, values in known.items()}


def checked(fields: Fields, columns: Mapping[str, Any]) -> Fields:
    """Return a report's fields if each fits its column: its type, from 0 to MOST, or None.

    Raises Truncated for the first that does not, since no load generator prints such a value.
    """
    for name, value in fields.items():
        kind = columns.get(name)
        if value is None or kind is None:
            continue
        if kind.is_numeric():
            wanted = int if kind.is_integer() else int | float
            # A comparison with NaN is false.
            fits = isinstance(value, wanted) and not isinstance(value, bool) and 0 <= value <= MOST
        else:
            fits = isinstance(value, str) or str(kind) != "String"
        if not fits:
            raise Truncated(f"{name} cannot be {str(value)[:40]}")
    return fields


def equal(what: str, value: int, other: str, other_value: int) -> None:
    """Raise Truncated if two numbers of one report that must be the same are not."""
    if value != other_value:
        raise Truncated(f"{what} are {value}, and {other} {other_value}")


def at_least(what: str, value: int, other: str, other_value: int) -> None:
    """Raise Truncated if one number of a report is less than another that it includes."""
    if value < other_value:
        raise Truncated(f"{what} are {value}, fewer than {other}, {other_value}")


class LoadGenerator(ABC, Generic[Report]):
    """One load generator; `Report`, the result of one rate, is its own type, opaque to others.

    `load` is the experiment's table of that name, whose keys `clients/<name>/client.toml` explains.
    Rates are in requests (or messages) per second of all connections, durations in seconds; names
    of fields and columns end in their unit. Only `read` and `compact` have side effects, on files
    next to the log.
    """

    # The columns that `parse` and `sampled` fill in `points`, in their order, with their types.
    columns: Mapping[str, Any]
    # Whether `seconds` has rows, so that the experiment's table of that name is not empty.
    has_seconds = False
    # The column that counts the connections that it began; if it is 0, no load was offered.
    attempts: str
    # Columns that count wrong answers by class: those that `replies` includes, and the others.
    wrong_replies: Sequence[str] = ()
    wrong_besides: Sequence[str] = ()
    # Columns that count connections with an opening that the client took for invalid.
    rejected: Sequence[str] = ()
    # Columns that are null for several clients, each with the reason.
    unknown_of_several: Mapping[str, str] = MappingProxyType({})
    # The quantity by which two datasets are compared: "reply_rate", "closed_loop" or "latency".
    headline: str
    # Whether a load with more connections than one process may have open, or one address has ports
    # for, is shared by several processes and addresses of one host.
    shares_host = False
    # Whether an invalid answer ends it with a message instead of a report.
    refuses = False

    @abstractmethod
    def command(
        self, host: str, port: int, load: Mapping, rate_rps: int, duration_s: float,
        part: Part = WHOLE, sources: Sequence[str] = (),
    ) -> list[str] | None:  # fmt: skip
        """Return the words that offer one client's part of a rate; the first is the program's name.

        The host that runs it knows the program's place. A rate of 0 is a closed loop, if there is
        one. Files are written to the working directory.

        `load`, `rate_rps` and `duration_s` are always those of the whole. The parts add up to it:
        rate, connections, connections being opened at a time, and each send at the instant at
        which a single client would have made it, if the clients start together. A load too small
        to be shared (such as fewer connections than clients) is that of the first clients; for each
        of the others the result is None, and it is not run. For WHOLE it is never None.

        Connections use the `sources`, addresses of the client's host, in turn; without any, the
        address that the kernel chooses.
        """

    @abstractmethod
    def time_limit_s(self, load: Mapping, duration_s: float) -> float:
        """Return the seconds after which a run of `command` is hung, and must be killed."""

    @abstractmethod
    def compact(self, log: Path) -> None:
        """Make the files next to the log, if there are any, small enough to keep.

        `log` has the output of `command`. It is called once, after the rate was offered; `read`
        reads the result.
        """

    @abstractmethod
    def read(self, log: Path) -> Report:
        """Return the report in and next to a run's log; an empty one if there is no log."""

    @abstractmethod
    def merge(self, reports: Sequence[Report]) -> Report:
        """Return one report of one or more clients that offered load to one server at one time.

        Counts and rates add up, since the clients start together, and histograms are added bin by
        bin. Quantiles, means and shares are taken of the sums, never of the single results; but the
        client's own lag and CPU are those of the client with the worst. What cannot be known of the
        whole is None, for the reason in `unknown_of_several`.
        """

    @abstractmethod
    def parse(self, report: Report, duration_s: float) -> Fields:
        """Return every field of the report, named and typed as in `columns`.

        Raises errors.Truncated if the report is not whole.
        """

    @abstractmethod
    def histogram(self, report: Report) -> pl.DataFrame:
        """Return the report's histograms, with the columns of histogram.SCHEMA; maybe no rows."""

    @abstractmethod
    def timed(self, report: Report, fields: Fields) -> Timed:
        """Return the times of what was due; `fields` are those that `parse` returned."""

    def own_delay(self, fields: Fields, limit_us: int) -> bool | None:
        """Return whether the client itself may have made 5 % of the times exceed a limit.

        `fields` are those of a whole report. None if `timed` counts from when the client acted, not
        from when it was due to act: then only `limited` says whether it kept up.
        """
        return None

    def seconds(self, report: Report) -> pl.DataFrame:
        """Return a row for each quantity and second (SECONDS); no row unless `has_seconds`."""
        # A plan, which imports this module, should not wait for polars.
        import polars as pl

        from deathmatch.load.histogram import SECONDS

        return pl.DataFrame(schema=SECONDS)

    def progress(self, report: Report, duration_s: float) -> list[float | None]:
        """Return the measured quantity in equal intervals, in order, while all load was offered.

        It is replies a second, or a latency, as in the points' figures. Intervals at the beginning
        and end of the run differ and are left out; [] if the report has no intervals.
        """
        return []

    def sampled(self, samples: pl.DataFrame, during: pl.DataFrame) -> Fields:
        """Return the fields that come from the kernel's samples, not from the report; {} if none.

        `samples` are all of the trial (measure.sampler), `during` those while the rate was
        offered; if there are none, every field is None.
        """
        return {}

    def few(self, load: Mapping) -> tuple[int, float]:
        """Return a rate and a duration in seconds at which a load asks for about ten replies."""
        return 100, 0.1

    def invalid(self, fields: Fields) -> Fields:
        """Return the counts of answers that the client took for invalid, by column; no zeros."""
        names = (*self.wrong_replies, *self.wrong_besides, *self.rejected)
        return {name: fields[name] for name in names if fields[name]}

    def good(self, fields: Fields) -> int:
        """Return how many of the `replies` were good answers."""
        return fields["replies"] - self.wrong(fields)

    def wrong(self, fields: Fields) -> int:
        """Return how many of the `replies` were wrong; `fields` are those of a whole report."""
        return sum(fields[name] or 0 for name in self.wrong_replies)

    def wrong_answers(self, fields: Fields) -> int:
        """Return how many answers were wrong, those that `replies` leaves out included."""
        return self.wrong(fields) + sum(fields[name] or 0 for name in self.wrong_besides)

    @abstractmethod
    def actual_rate_rps(
        self, fields: Fields, during: pl.DataFrame, spec: Mapping, opened: int | None = None
    ) -> float | None:
        """Return the mean rate that was really offered within `duration_s`; None if unknown.

        `spec` is the trial's: `duration_s` and `load` are read. For one of several clients,
        `fields` are its own, `during` has no row, and `opened` is the number of connections that
        its kernel began in that time, None if not counted.
        """

    @abstractmethod
    def limited(
        self, fields: Fields, offered_rate_rps: float, actual_rate_rps: float | None
    ) -> bool:
        """Return whether the client, not the server, limited the point.

        Each module defines the limits of its program. Each of several clients is judged by its own
        fields and its own share of the rate.
        """


Texts = tuple[str, ...]
"""The report of a program that only prints: the text of each client."""


class PrintingGenerator(LoadGenerator[Texts]):
    """A load generator whose report is what it prints."""

    def compact(self, log: Path) -> None:
        """Do nothing: there is only the log."""

    def read(self, log: Path) -> Texts:
        """Return the log's text, with invalid UTF-8 replaced."""
        return (log.read_text(errors="replace") if log.exists() else "",)

    def merge(self, reports: Sequence[Texts]) -> Texts:
        """Return the texts of all, which `parse` and `histogram` combine."""
        return tuple(text for report in reports for text in report)
