"""The interface of a load generator to the rest of the study: the class that each extends.

What every report must pass is here too: values that fit a table, and numbers that agree. Nothing
else checks a report again.
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

# In the words of a command: the folder of the project on the client's host.
PROJECT = "{project}"

# The key of a load that is not in its experiment: the body that each answer must have.
BODY = "body"
# The body for each of the varied values that the experiment `dynamic` asks for.
BODIES = "clients/httperf/values.bodies"
# The column with the first wrong answer that a client got: its status, and how it begins.
FIRST_WRONG = "first_wrong_answer"

# A report's fields, by the column of `points` that each fills; None where it is undefined.
Fields = dict[str, int | float | str | None]


# The greatest number of a column of whole numbers.
MOST = 2**63 - 1

Report = TypeVar("Report")


class Timed(NamedTuple):
    """By what lateness is judged.

    `times` has `time_us` and `count` of what was answered, `due` counts all that should have been;
    of the answers, `wrong` were of another status than they should be.
    """

    times: pl.DataFrame
    due: int
    wrong: int = 0


@dataclass(frozen=True)
class Part:
    """Which of several clients, 0 to `of` - 1, that together offer one load; ValueError if none.

    What is counted (connections, requests) is dealt to the clients in turn, one to each: number k
    is of client k mod `of`. So the shares add up, and differ by one at most.
    """

    index: int
    of: int

    def __post_init__(self) -> None:
        if not 0 <= self.index < self.of:
            raise ValueError(f"there is no client {self.index} among {self.of}, counted from 0")

    def share(self, count: int) -> int:
        """Return how many of `count` things fall to this client."""
        return (count + self.of - 1 - self.index) // self.of

    def among(self, most: int) -> Part | None:
        """Return its part if no more than `most` clients find something to do; None if it does not.

        They are the first ones.
        """
        of = min(self.of, most)
        return Part(self.index, of) if self.index < of else None


WHOLE = Part(0, 1)


def shared(
    part: Part, sources: Sequence[str], load: Mapping = MappingProxyType({}),
    escaped: Callable[[str], str] = str,
) -> list[str]:  # fmt: skip
    """Return the words by which each of our programs knows its part and its source addresses.

    And the body that each answer must have, if the load says, `escaped` as the program has texts.
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

    `how` has a function of the known values for each field that does not add up. A field that no
    client knows is None.
    """
    known = {name: [part[name] for part in parts if part[name] is not None] for name in parts[0]}
    return {name: how.get(name, sum)(values) if values else None for name, values in known.items()}


def checked(fields: Fields, columns: Mapping[str, Any]) -> Fields:
    """Return a report's fields, of which each fits its column: its type, from 0 to MOST, or None.

    Raises Truncated for the first that does not: no load generator of ours printed it.
    """
    for name, value in fields.items():
        kind = columns.get(name)
        if value is None or kind is None or not kind.is_numeric():
            continue
        wanted = int if kind.is_integer() else int | float
        # A comparison with a number that is none is false.
        fits = isinstance(value, wanted) and not isinstance(value, bool) and 0 <= value <= MOST
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
    """One load generator; `Report` is what one rate left, its own type, opaque to all others.

    `load` is the experiment's table of that name, whose keys `clients/<name>/client.toml` explains.
    Rates are in requests (or messages) per second of all connections, durations in seconds; names
    of fields and columns end in their unit. Only `read` and `compact` touch files, only those
    next to the log; nothing else has an effect.
    """

    # The columns that `parse` and `sampled` fill in `points`, in their order, with their types.
    columns: Mapping[str, Any]
    # Whether `seconds` has rows, so that the experiment's table of that name is not empty.
    has_seconds = False
    # The column that counts the connections it began: with none, no load was offered.
    attempts: str
    # Columns that count wrong answers by class: of those in `replies`, and of those left out there.
    wrong_replies: Sequence[str] = ()
    wrong_besides: Sequence[str] = ()
    # Columns that count connections whose beginning the client did not take for valid.
    rejected: Sequence[str] = ()
    # Columns that are null for several clients, because they cannot be known of all: why not.
    unknown_of_several: Mapping[str, str] = MappingProxyType({})
    # By what two datasets are compared: "reply_rate", "closed_loop" or "latency".
    headline: str
    # Whether several processes of it on a host share a load of more connections than one may have
    # open, and more addresses one of more than one has ports for.
    shares_host = False
    # Whether it ends without a report, in words of its own, at an answer that it takes for invalid.
    refuses = False

    @abstractmethod
    def command(
        self, host: str, port: int, load: Mapping, rate_rps: int, duration_s: float,
        part: Part = WHOLE, sources: Sequence[str] = (),
    ) -> list[str] | None:  # fmt: skip
        """Return the words that offer one client's part of a rate; the first is the program's name.

        Where that program is, the host that runs it knows. 0 is a closed loop, where there is one.
        What it writes besides its output is in its working directory.

        `load`, `rate_rps` and `duration_s` are always those of the whole. The parts add up to it:
        rate, connections, connections in the making at a time, and each send at the instant at
        which one client would have made it, as far as the clients start together. A load too small
        to be shared (fewer connections than clients, say) is that of the first clients; for each
        of the others the result is None, and it is not to be run. WHOLE is never None.

        Connections begin at the `sources` in turn, addresses of the client's host; with none, at
        the address that its kernel chooses.
        """

    @abstractmethod
    def time_limit_s(self, load: Mapping, duration_s: float) -> float:
        """Return after how many seconds a run of `command` has wedged and is to be killed."""

    @abstractmethod
    def compact(self, log: Path, keep_events: bool) -> None:
        """Make what was written next to the log small enough to keep; do nothing if there is none.

        `log` has the output of `command`. With `keep_events`, single events stay too. Called once,
        after the rate was offered; `read` reads the result.
        """

    @abstractmethod
    def read(self, log: Path) -> Report:
        """Return what a run left in and next to its log; an empty report if there is no log."""

    @abstractmethod
    def merge(self, reports: Sequence[Report]) -> Report:
        """Return one report of what several clients offered to one server at the same time.

        At least one. Counts add up and histograms are added bin by bin; what is taken of them
        (quantiles, means, shares) is taken of the sums, never of the single results; only the
        client's own lag and CPU are those of the client that is worst off. What cannot be known of
        the whole is None, for the reason in `unknown_of_several`. Rates add up: the clients start
        together.
        """

    @abstractmethod
    def parse(self, report: Report, duration_s: float) -> Fields:
        """Return every field of the report, named and typed as in `columns`.

        Raises errors.Truncated if the report is not whole.
        """

    @abstractmethod
    def histogram(self, report: Report) -> pl.DataFrame:
        """Return the report's histograms, with the columns of histogram.SCHEMA; maybe no row."""

    @abstractmethod
    def timed(self, report: Report, fields: Fields) -> Timed:
        """Return how long what was due took; `fields` are those that `parse` returned of it."""

    def own_delay(self, fields: Fields, limit_us: int) -> bool | None:
        """Return whether it may itself be why one time in twenty or more exceeds a limit.

        `fields` are those of a whole report. None where `timed` counts from what it did, not from
        when that was due: then only `limited` says whether it kept up.
        """
        return None

    def seconds(self, report: Report) -> pl.DataFrame:
        """Return a row for each quantity and second (SECONDS); no row unless `has_seconds`."""
        # polars loads slowly, and a plan, which imports this module, needs none.
        import polars as pl

        from deathmatch.load.histogram import SECONDS

        return pl.DataFrame(schema=SECONDS)

    def progress(self, report: Report, duration_s: float) -> list[float | None]:
        """Return what was measured in equal intervals, while all load was offered, in their order.

        Replies a second, or a latency: whatever the points' figures are of. Without intervals of
        the run's beginning and end, which are unlike the others; [] if the report does not say.
        """
        return []

    def sampled(self, samples: pl.DataFrame, during: pl.DataFrame) -> Fields:
        """Return those fields that the kernel's samples tell, not the report; {} if none.

        `samples` are all of the trial (measure.sampler), `during` those while the rate was
        offered, which may be none: then every field is None.
        """
        return {}

    def few(self, load: Mapping) -> tuple[int, float]:
        """Return a rate and a duration at which a load asks for about ten replies."""
        return 100, 0.1

    def invalid(self, fields: Fields) -> Fields:
        """Return the counts of answers that the client took for invalid, by column; not zeros."""
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
        """Return the mean rate that was really offered in the `duration_s` it had; None if unknown.

        `spec` is the trial's: `duration_s` and `load` are read. For one of several clients,
        `fields` are its own, `during` has no row, and `opened` is how many connections its kernel
        began in that time, None if nobody counted.
        """

    @abstractmethod
    def limited(
        self, fields: Fields, offered_rate_rps: float, actual_rate_rps: float | None
    ) -> bool:
        """Return whether the client, not the server, limited the point.

        Each module says what limits its program, and at which share. Of several, each is judged by
        its own fields and its own share of the rate.
        """


Texts = tuple[str, ...]
"""The report of a program that only prints: its text as it was printed, for each client."""


class PrintingGenerator(LoadGenerator[Texts]):
    """A load generator whose report is what it prints."""

    def compact(self, log: Path, keep_events: bool) -> None:
        """Do nothing: there is only the log."""

    def read(self, log: Path) -> Texts:
        """Return the log's text, what is not UTF-8 replaced."""
        return (log.read_text(errors="replace") if log.exists() else "",)

    def merge(self, reports: Sequence[Texts]) -> Texts:
        """Return the texts of all, which `parse` and `histogram` take together."""
        return tuple(text for report in reports for text in report)
