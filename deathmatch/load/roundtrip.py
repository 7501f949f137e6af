"""roundtrip: the command line and the report of clients/roundtrip (see its --help).

An experiment's `load` for it has `request` (the bytes sent, as in `conformance`), `connections` and
`timeout_s`.
"""

import itertools
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from operator import itemgetter

import polars as pl

from deathmatch.errors import Truncated
from deathmatch.load import generator, histogram
from deathmatch.load.generator import WHOLE, Fields, Part, PrintingGenerator, Texts, Timed

# A client that uses this share of a CPU, or more, may be the limit instead of the server.
CPU_LIMIT_PERCENT = 95
# If the client itself makes more than one send in twenty later than this, the latencies that it
# reports include its own delay.
SEND_LAG_LIMIT_US = 1000
ON_TIME, CONFIDENCE = 0.95, 0.99
"""The share of sends that must be on time, and the confidence with which fewer must be shown."""
LEAST_LAG = "send_lag_p95_least_us"
"""The lower bound of the lag's 95th percentile, at CONFIDENCE; one of ten sends may be late."""

VERSION = 3

_FAILURES = (
    "client_timeout", "connection_refused", "connection_reset", "connection_closed",
    "wrong_status", "wrong_length", "answer_cut", "answer_different",
    "descriptors_unavailable", "address_unavailable", "other",
)  # fmt: skip

# The lines of the report's head, in their order.
_HEAD = {
    "roundtrip": pl.Int64,
    "loop": pl.String,
    "connections": pl.Int64,
    "offered_rate_rps": pl.Float64,
    "offered_duration_us": pl.Int64,
    "test_duration_us": pl.Int64,
    "request_bytes": pl.Int64,
    "reply_bytes": pl.Int64,
    "reply_begins": pl.String,
    "requests": pl.Int64,
    "requests_offered_window": pl.Int64,
    "replies": pl.Int64,
    "replies_offered_window": pl.Int64,
    "reply_rate_offered_window_rps": pl.Float64,
    "unsent": pl.Int64,
    "connects": pl.Int64,
    "idle_losses": pl.Int64,
    "errors_total": pl.Int64,
    **{f"errors_{failure}": pl.Int64 for failure in _FAILURES},
    "client_cpu_user_us": pl.Int64,
    "client_cpu_system_us": pl.Int64,
    "informational": pl.Int64,
    "reply_head_bytes": pl.Int64,
    "answers_unasked": pl.Int64,
    generator.FIRST_WRONG: pl.String,
}
_CALLS = dict.fromkeys(("calls", "gather_us", "most_under_way", "received_bytes"), pl.Int64)

# Lines that are in the experiment's plan, and the report's version.
_ELSEWHERE = ("roundtrip", "offered_rate_rps", "offered_duration_us", "reply_head_bytes")

COLUMNS = {name: kind for name, kind in _HEAD.items() if name not in _ELSEWHERE} | {
    "client_cpu_total_percent": pl.Float64,
    "send_lag_p95_us": pl.Int64,
    "send_lag_p99_us": pl.Int64,
}

# How the fields of several clients are combined, if they are not added; some are the same for all.
_ALIKE = (
    "roundtrip", "loop", "offered_duration_us", "request_bytes", "reply_bytes", "reply_begins",
    "reply_head_bytes", "calls", "gather_us", generator.FIRST_WRONG,
)  # fmt: skip
_COMBINED = {**dict.fromkeys(_ALIKE, itemgetter(0)), "test_duration_us": max}


# The form of a value of each type in the report, with the most digits.
_WRITTEN = {
    pl.String: re.compile(r"[ -~]*"),
    pl.Int64: re.compile(r"[0-9]{1,19}"),
    pl.Float64: re.compile(r"[0-9]{1,19}(?:\.[0-9]{1,9})?"),
}
_TIME = r"[0-9]{1,15}(?:\.[0-9]{1,9})?"
_BIN = re.compile(rf"^([a-z_]+) ({_TIME}) ({_TIME}) ([0-9]{{1,15}})$", re.MULTILINE)


class Roundtrip(PrintingGenerator):
    """The load generator (generator.LoadGenerator); its rate counts requests, 0 is closed loop."""

    columns = COLUMNS
    attempts = "connects"
    headline = "closed_loop"
    refuses = True
    step_us = 0
    """Requests due within a step of this length are sent together at its end, and not late."""
    wrong_besides = (
        "errors_answer_different", "errors_wrong_status", "errors_wrong_length",
        "errors_answer_cut", "answers_unasked",
    )  # fmt: skip

    def command(
        self, host: str, port: int, load: Mapping, rate_rps: int, duration_s: float,
        part: Part = WHOLE, sources: Sequence[str] = (),
    ) -> list[str] | None:  # fmt: skip
        """Return the command line for one offered rate.

        At most one client for each connection, or request in open loop, takes part.
        """
        requests = int(rate_rps * duration_s) if rate_rps else load["connections"]
        own = part.among(max(1, min(load["connections"], requests)))
        if own is None:
            return None
        request = escaped(load["request"])
        words = [
            "roundtrip", f"--host={host}", f"--port={port}", f"--request={request}",
            f"--connections={load['connections']}", f"--rate={rate_rps:g}",
            f"--duration={duration_s:g}", f"--timeout={load['timeout_s']:g}",
        ]  # fmt: skip
        return [*words, *generator.shared(own, sources, load, escaped)]

    def idle_command(
        self, host: str, port: int, load: Mapping, connections: int,
        part: Part = WHOLE, sources: Sequence[str] = (),
    ) -> list[str] | None:  # fmt: skip
        """Return the command line that holds idle connections until its standard input ends.

        `connections` are those of all clients; this one holds and prints `part.share(connections)`.
        None if its share is 0.
        """
        own = part.share(connections)
        one = self.command(host, port, {**load, "connections": 1}, 0, 1, sources=sources)
        return [*one, f"--idle={own}"] if own else None

    def time_limit_s(self, load: Mapping, duration_s: float) -> float:
        """Return the limit: two exchanges, the connections, the test, its stragglers."""
        return duration_s + 4 * load["timeout_s"] + 5

    def parse(self, report: Texts, duration_s: float) -> Fields:
        """Return the report's fields, named and typed as in COLUMNS, and LEAST_LAG.

        `client_cpu_total_percent` is of one CPU over the whole test; `send_lag_p95_us` and
        `send_lag_p99_us` are percentiles of the client's own delay (the upper bound of the bin;
        None in closed loop). Of several clients, these and LEAST_LAG are the highest. `duration_s`
        is not used, as the report has it. Raises Truncated if a line is missing or of another type,
        or if the bins or the errors do not add up.
        """
        fields = fields_of(report)
        return {name: fields.get(name) for name in (*COLUMNS, LEAST_LAG)}

    def histogram(self, report: Texts) -> pl.DataFrame:
        """Return the histograms of service_time, latency and send_lag.

        `time_us` is a bin's centre, rounded; the report's own bins are at most 0.8 % wide.
        """
        rows = [
            (quantity, _centre_us(lower, upper), count)
            for text in report
            for quantity, lower, upper, count in bins(text)
        ]
        frame = pl.DataFrame(rows, schema=histogram.SCHEMA, orient="row")
        if len(report) > 1:
            return histogram.merge([frame])
        return frame.group_by("quantity", "time_us", maintain_order=True).agg(pl.col("count").sum())

    def timed(self, report: Texts, fields: Fields) -> Timed:
        """Return the times from the intended send to the reply, in open loop."""
        times = self.histogram(report).filter(pl.col("quantity") == "latency")
        return Timed(times, fields["replies"] + fields["errors_total"] + fields["unsent"])

    def actual_rate_rps(
        self, fields: Fields, during: pl.DataFrame, spec: Mapping, opened: int | None = None
    ) -> float | None:
        """Return the mean rate of requests that it sent within `duration_s`."""
        sent = fields["requests_offered_window"]
        return None if sent is None else sent / spec["duration_s"]

    def limited(
        self, fields: Fields, offered_rate_rps: float, actual_rate_rps: float | None
    ) -> bool:
        """Return whether the client was the limit: it had no CPU left, or was itself late to send.

        Fewer requests than offered are no sign of it: a connection waits for its answer before it
        sends again.
        """
        if actual_rate_rps is None:
            return True
        return self.own_delay(fields, SEND_LAG_LIMIT_US + self.step_us, LEAST_LAG)

    def own_delay(self, fields: Fields, limit_us: int, lag: str = "send_lag_p95_us") -> bool:
        """Return whether it had no CPU left, or the lag, the field of that name, was longer.

        A search uses the percentile itself, as recorded searches decided by it.
        """
        late = (fields.get(lag) or 0) > limit_us
        return fields["client_cpu_total_percent"] >= CPU_LIMIT_PERCENT or late


GENERATOR = Roundtrip()


def escaped(request: str) -> str:
    """Return a request, escaped for the command line."""
    named = {"\r": r"\r", "\n": r"\n", "\t": r"\t", "\\": r"\\"}
    return "".join(
        named.get(character)
        or (character if " " <= character <= "~" else rf"\x{ord(character):02x}")
        for character in request
    )


def fields_of(report: Texts) -> Fields:
    """Return every field of all clients' reports, and their lag and CPU share.

    Raises Truncated as `Roundtrip.parse` does.
    """
    parts = [_fields(text) for text in report]
    own = [_own(part, text) for part, text in zip(parts, report)]
    return generator.combined(parts, _COMBINED) | generator.combined(
        own, dict.fromkeys(own[0], max)
    )


def _fields(text: str) -> Fields:
    lines = text.split("\n")
    begun = re.match(r"roundtrip: (\d{1,3})\nloop: (\w+)\n", text)
    version, loop = (int(begun[1]), begun[2]) if begun else (0, "")
    if version != VERSION:
        raise Truncated(f"the report does not begin with version {VERSION}")
    head = _HEAD | (_CALLS if loop == "calls" else {})
    if not text.endswith("\nend\n") or len(lines) < len(head):
        raise Truncated("the report has no last line")
    fields: Fields = {}
    for number, (name, kind) in enumerate(head.items()):
        found, separator, value = lines[number].partition(": ")
        if found != name or not separator or not _WRITTEN[kind].fullmatch(value):
            raise Truncated(f"line {number + 1} is {lines[number][:80]!r}, not {name}")
        fields[name] = value if kind == pl.String else (float if kind == pl.Float64 else int)(value)
    fields[generator.FIRST_WRONG] = fields[generator.FIRST_WRONG] or None
    generator.checked(fields, head)
    _agree(fields, text, len(head))
    return fields


def _agree(fields: Fields, text: str, head_lines: int) -> None:
    """Raise Truncated if the report contradicts itself."""
    found = bins(text)
    if len(found) != text.count("\n") - head_lines - 1:
        raise Truncated("a line after the head is not a bin")
    counts: dict[str, int] = {}
    for quantity, _, _, count in found:
        counts[quantity] = counts.get(quantity, 0) + count
    # In closed loop nothing has a due time; with calls, connections have one.
    of_replies = {
        "open": ("service_time", "latency"),
        "calls": ("service_time", "replies_at"),
    }.get(fields["loop"], ("service_time",))
    for quantity in of_replies:
        counted = counts.get(quantity, 0)
        generator.equal(
            f"the bins' counts of {quantity}", counted, "the replies", fields["replies"]
        )
    failed = fields["errors_total"]
    if fields["loop"] == "open":
        # Each request that was begun is counted there once, answered or not.
        lags = counts.get("send_lag", 0)
        generator.at_least("the bins' counts of send_lag", lags, "the replies", fields["replies"])
    if fields["loop"] == "calls":
        ended = counts.get("latency", 0) + failed
        due = counts.get("send_lag", 0)
        generator.equal("connections answered and failed", ended, "those due", due)
    errors = sum(fields[name] for name in fields if name.startswith("errors_")) - failed
    generator.equal("errors by kind", errors, "all errors", failed)


def _own(fields: Fields, text: str) -> Fields:
    """Return one client's share of its CPU, and its lag by the upper bounds of bins."""
    cpu_us = fields["client_cpu_user_us"] + fields["client_cpu_system_us"]
    tested_us = fields["test_duration_us"]
    rows = [(upper, count) for quantity, _, upper, count in bins(text) if quantity == "send_lag"]
    lags = pl.DataFrame(rows, {"time_us": pl.Float64, "count": pl.Int64}, orient="row")
    found = zip((95, 99), histogram.quantiles_us(lags, [0.95, 0.99]))
    return {
        "client_cpu_total_percent": 100 * cpu_us / tested_us if tested_us else 0.0,
        **{f"send_lag_p{q}_us": None if us is None else round(us) for q, us in found},
        LEAST_LAG: _least_lag_us(lags),
    }


def _least_lag_us(lags: pl.DataFrame) -> float | None:
    """Return LEAST_LAG: an order statistic, whatever the distribution (David and Nagaraja 2003)."""
    # A dry run should not wait for scipy.
    from scipy.stats import binom

    sends = int(lags["count"].sum())
    place = binom.ppf(1 - CONFIDENCE, sends, ON_TIME) if sends else 0
    return histogram.quantile_us(lags, place / sends) if place else None


def coarser(text: str, limits_us: Sequence[int]) -> str:
    """Return a report with fewer bins, which has the same counts above each limit.

    Bins of one quantity between the same two limits become one, except those of `send_lag`, by
    which the client is judged, and `replies_at`.
    """

    def place(line: str) -> tuple[str, int] | str:
        found = _BIN.fullmatch(line)
        if not found or found[1] in ("send_lag", "replies_at"):
            return line
        return found[1], bisect_left(limits_us, _centre_us(float(found[2]), float(found[3])))

    merged: list[str] = []
    for where, lines in itertools.groupby(text.split("\n"), place):
        if isinstance(where, str):
            merged += lines
            continue
        words = [line.split(" ") for line in lines]
        count = sum(int(count) for *_, count in words)
        merged.append(f"{where[0]} {words[0][1]} {words[-1][2]} {count}")
    return "\n".join(merged)


def _centre_us(lower_us: float, upper_us: float) -> int:
    return round((lower_us + upper_us) / 2)


def bins(text: str) -> list[tuple[str, float, float, int]]:
    """Return quantity, lower and upper bound in us, and count of each bin of a report."""
    found = _BIN.findall(text)
    return [(quantity, float(low), float(high), int(count)) for quantity, low, high, count in found]
