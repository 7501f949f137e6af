"""httperf: its command line and its report (httperf(1), version 0.9.0 with our patch)."""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, pstdev

import polars as pl

from deathmatch.errors import Truncated
from deathmatch.load import histogram, sound
from deathmatch.load.generator import PROJECT, START_UP_S, WHOLE, Fields, Part, Timed, shared
from deathmatch.load.histogram import SECONDS

REPLY_INTERVAL_S = 0.5  # RATE_INTERVAL in clients/httperf/deathmatch.patch

# Below this share of the offered connections actually opened in time, the client, or the CPU
# it shares, is what was measured.
CLIENT_LIMIT = 0.97
# httperf polls without pause, so that it uses all of a CPU that it has for itself (1998 paper);
# with less than this share, something else used the CPU too.
CPU_SHARE_PERCENT = 75

# Request targets, each ended by a zero byte: 1,000 values of letters drawn by random.Random(2011),
# with the escapes of the one in experiments/dynamic.toml, and as long.
VALUES = "clients/httperf/values.uris"

# Errors of the client's own making, as columns of COLUMNS.
OWN_ERRORS = [
    f"errors_{what}"
    for what in ("descriptors_unavailable", "address_unavailable", "file_table_full")
]

UNKNOWN_OF_SEVERAL = {
    "connect_burst_connections": "bursts of several clients may fall together, or apart",
    "concurrent_connections": "the clients' peaks may lie at different moments",
    "client_cpu_user_percent": "shares of different CPUs",
    "client_cpu_system_percent": "shares of different CPUs",
}

# A number as httperf prints it: %f of a huge or undefined value gives inf or nan, and of one just
# below zero -0.0.
_N = r"(\d+(?:\.\d+)?|-0+(?:\.0+)?|-?inf|-?nan)"
# A sample of the reply rate, which is padded with spaces.
_SAMPLE = re.compile(rf"^reply-rate = {_N} *$", re.ASCII)
_BINS_BEGIN = "Connection lifetime histogram"
_BIN = re.compile(r"^ +(\d+)\.(\d{3}) (\d+)$", re.ASCII)
# Of the longest number there, by far: all of its bins together fit a column.
_DIGITS = 12

# Each pattern must match once, in the report's order; the columns are named by their new unit.
_LINES: list[tuple[str, list[str]]] = [
    (r"Maximum connect burst length: (\d+)", ["connect_burst_connections"]),
    (
        rf"Total: connections (\d+) requests (\d+) replies (\d+) test-duration {_N} s",
        ["connections", "requests", "replies", "test_duration_us"],
    ),
    (
        rf"Connection rate: {_N} conn/s \({_N} ms/conn, <=(\d+) concurrent connections\)",
        ["connection_rate_rps", "connection_period_us", "concurrent_connections"],
    ),
    (
        rf"Connection time \[ms\]: min {_N} avg {_N} max {_N} median {_N} stddev {_N}",
        [f"connection_time_{q}_us" for q in ("min", "avg", "max", "median", "stddev")],
    ),
    (rf"Connection time \[ms\]: connect {_N}", ["connect_time_avg_us"]),
    (rf"Connection length \[replies/conn\]: {_N}", ["connection_length_replies"]),
    (rf"Request rate: {_N} req/s \({_N} ms/req\)", ["request_rate_rps", "request_period_us"]),
    (rf"Request size \[B\]: {_N}", ["request_size_bytes"]),
    (
        rf"Reply rate \[replies/s\]: min {_N} avg {_N} max {_N} stddev {_N} \((\d+) samples\)",
        [f"reply_rate_{q}_rps" for q in ("min", "avg", "max", "stddev")] + ["reply_rate_samples"],
    ),
    (
        rf"Reply time \[ms\]: response {_N} transfer {_N}",
        ["response_time_avg_us", "transfer_time_avg_us"],
    ),
    (
        rf"Reply size \[B\]: header {_N} content {_N} footer {_N} \(total {_N}\)",
        [f"reply_{part}_bytes" for part in ("header", "content", "footer", "total")],
    ),
    (
        r"Reply status: 1xx=(\d+) 2xx=(\d+) 3xx=(\d+) 4xx=(\d+) 5xx=(\d+)",
        [f"replies_{n}xx" for n in range(1, 6)],
    ),
    (
        rf"CPU time \[s\]: user {_N} system {_N} \(user {_N}% system {_N}% total {_N}%\)",
        [f"client_cpu_{mode}_us" for mode in ("user", "system")]
        + [f"client_cpu_{mode}_percent" for mode in ("user", "system", "total")],
    ),
    (
        rf"Net I/O: {_N} KB/s \({_N}\*10\^6 bps\)",
        ["net_io_bytes_per_s", "net_io_megabit_per_s"],
    ),
    (
        r"Errors: total (\d+) client-timo (\d+) socket-timo (\d+) connrefused (\d+) "
        r"connreset (\d+)",
        [f"errors_{what}" for what in ("total", "client_timeout", "socket_timeout",
                                       "connection_refused", "connection_reset")],
    ),
    (
        r"Errors: fd-unavail (\d+) addrunavail (\d+) ftab-full (\d+) other (\d+)",
        [f"errors_{what}" for what in ("descriptors_unavailable", "address_unavailable",
                                       "file_table_full", "other")],
    ),
]  # fmt: skip

_TEST_DURATION, _CPU, _NET_IO = "test_duration_us", "client_cpu_", "net_io_bytes_per_s"


def _is_whole(column: str) -> bool:
    return not column.endswith(("_rps", "_percent", "_replies", "_per_s", "_bytes"))


COLUMNS = {
    column: pl.Int64 if _is_whole(column) else pl.Float64
    for _, columns in _LINES
    for column in columns
} | {"reply_rate_offered_window_rps": pl.Float64}


def _value(column: str, text: str) -> int | float | None:
    if text.lstrip("-") in ("inf", "nan"):
        return None
    number = float(text)
    if column.endswith("_us"):
        in_seconds = column == _TEST_DURATION or column.startswith(_CPU)
        number *= 1_000_000 if in_seconds else 1_000
    if column == _NET_IO:
        number *= 1024
    if not math.isfinite(number):
        raise Truncated(f"{column} cannot be {text[:40]}")
    return round(number) if COLUMNS[column] == pl.Int64 else number


# One text, as it was printed, for each client.
Report = tuple[str, ...]


class Httperf:
    """The load generator (generator.LoadGenerator); its rate counts requests."""

    columns = COLUMNS
    has_seconds = False
    attempts = "connections"
    unknown_of_several = UNKNOWN_OF_SEVERAL
    headline = "reply_rate"

    def command(
        self, host: str, port: int, load: Mapping, rate_rps: int, duration_s: float,
        part: Part = WHOLE, sources: Sequence[str] = (),
    ) -> list[str] | None:  # fmt: skip
        """Return httperf's command line: the connection rate is the rate over the calls on each.

        Two -v make it print its samples and its histogram. No more clients take part than there
        are connections; each begins one every `of` periods of the whole, the first after as many
        as clients come before it.
        """
        calls = load["requests_per_connection"]
        rate = rate_rps / calls
        connections = max(1, round(rate * duration_s))
        own = part.among(connections)
        if own is None:
            return None
        told = f"{rate:g}"
        varied = load.get("values") == "varied"
        words = [
            "httperf", "-v", "-v", f"--server={host}", f"--port={port}",
            f"--wlog=y,{PROJECT}/{VALUES}" if varied else f"--uri={load['uri']}",
            f"--rate={told if own.of == 1 else float(told) / own.of}",
            f"--num-conns={own.share(connections)}",
            f"--num-calls={calls}",
            f"--timeout={load['timeout_s']:g}",
        ]  # fmt: skip
        close = ["--add-header=Connection: close\\n"] if calls == 1 else []
        return [*words, *close, *shared(own, sources)]

    def time_limit_s(self, load: Mapping, duration_s: float) -> float:
        """Return when it has wedged: out of ports or descriptors, it never ends by itself."""
        return duration_s + (load["requests_per_connection"] + 1) * load["timeout_s"] + 5

    def compact(self, log: Path, keep_events: bool) -> None:
        """Do nothing: there is only the log."""

    def read(self, log: Path) -> Report:
        """Return the log's text, what is not UTF-8 replaced."""
        return (log.read_text(errors="replace") if log.exists() else "",)

    def merge(self, reports: Sequence[Report]) -> Report:
        """Return the texts of all; `parse` and `histogram` take them together.

        A mean is the sum of all times over their number, as far as httperf's digits go. Of the
        clients' shares of a CPU the least counts, which tells of other load there
        (`client_cpu_total_percent`).
        """
        return tuple(text for report in reports for text in report)

    def parse(self, report: Report, duration_s: float) -> Fields:
        """Return every field of httperf's report, named and typed as in COLUMNS.

        Times in us, where httperf prints ms and s; sizes in bytes (its KB has 1024).

        `reply_rate_offered_window_rps` is the mean of the reply-rate samples that lie within the
        offered window of `duration_s`; httperf's own mean also counts the time it waits for
        stragglers. Raises Truncated if any line is missing or no number, or if those of a report
        contradict each other: samples, replies by status, errors, the histogram's connections.
        """
        parts = [_fields(text) for text in report]
        fields = parts[0] if len(parts) == 1 else _merged(parts, report)
        rates = reply_rates(report)[: max(1, int(duration_s / REPLY_INTERVAL_S))]
        # A run shorter than one interval has no sample.
        fields["reply_rate_offered_window_rps"] = (
            sum(rates) / len(rates) if rates else fields["replies"] / duration_s
        )
        return fields

    def histogram(self, report: Report) -> pl.DataFrame:
        """Return the connection-time histogram: bin centres in us, bins of 10 us.

        httperf counts a connection in it once it got at least one reply. Raises Truncated for a
        line of it that is none.
        """
        found = [_histogram(text) for text in report]
        return found[0] if len(found) == 1 else histogram.merge(found)

    def timed(self, report: Report, fields: Fields) -> Timed:
        """Return the lifetimes of connections, of all that were begun; a 500 is a wrong answer."""
        wrong = fields["replies"] - fields["replies_2xx"]
        return Timed(self.histogram(report), fields["connections"], wrong)

    def seconds(self, report: Report) -> pl.DataFrame:
        """Return no row: httperf does not tell what was due when."""
        return pl.DataFrame(schema=SECONDS)

    def progress(self, report: Report, duration_s: float) -> list[float | None]:
        """Return the reply rates of the offered time, but for its first REPLY_INTERVAL_S.

        In that, the connections come under way that are always under way later.
        """
        return list(reply_rates(report)[1 : int(duration_s / REPLY_INTERVAL_S)])

    def sampled(self, samples: pl.DataFrame, during: pl.DataFrame) -> Fields:
        """Return nothing: the report tells all."""
        return {}

    def actual_rate_rps(
        self, fields: Fields, during: pl.DataFrame, spec: Mapping, opened: int | None = None
    ) -> float | None:
        """Return the mean request rate that the client offered in the `duration_s` it had.

        From the growth of its kernel's ActiveOpens up to the sample nearest to the end of that
        time (`measure.sampler` takes one there), times the calls on a connection; None if there is
        no sample within 5 % of it. httperf's own rates also count its wait for stragglers.
        """
        duration_s = spec["duration_s"]
        if opened is not None:
            return spec["load"]["requests_per_connection"] * opened / duration_s
        if len(during) < 2:
            return None
        time_s = (during["time_us"] - during["time_us"][0]) / 1e6 - START_UP_S
        away_s = (time_s - duration_s).abs()
        nearest = away_s.arg_min()
        if away_s[nearest] > 0.05 * duration_s:
            return None
        opens = during["client_active_opens"]
        return spec["load"]["requests_per_connection"] * (opens[nearest] - opens[0]) / duration_s

    def limited(
        self, fields: Fields, offered_rate_rps: float, actual_rate_rps: float | None
    ) -> bool:
        """Return whether it fell behind, ran out of descriptors or ports, or shared its CPU."""
        starved = sum(fields[error] or 0 for error in OWN_ERRORS)
        late = actual_rate_rps is None or actual_rate_rps < CLIENT_LIMIT * offered_rate_rps
        share = fields["client_cpu_total_percent"]
        return late or starved > 0 or (share is not None and share < CPU_SHARE_PERCENT)


GENERATOR = Httperf()


def reply_rates(report: Report) -> list[float]:
    """Return the reply-rate samples in replies per second, one each REPLY_INTERVAL_S.

    Those of several clients add up, up to where the first of them ends.
    """
    return [sum(at_once) for at_once in zip(*map(_samples, report))]


def _samples(text: str) -> list[float]:
    found = [_SAMPLE.match(line) for line in text.split("\n") if line.startswith("reply-rate")]
    values = [float(match[1]) if match else math.nan for match in found]
    if not all(map(math.isfinite, values)):
        raise Truncated("a sample of the reply rate is no number")
    return values


def _fields(text: str) -> Fields:
    fields: Fields = {}
    position = 0
    for pattern, columns in _LINES:
        match = re.compile(f"^{pattern}", re.MULTILINE | re.ASCII).search(text, position)
        if not match:
            raise Truncated(f"no line {pattern.split(':')[0]!r} after character {position}")
        position = match.end()
        for column, found in zip(columns, match.groups()):
            fields[column] = _value(column, found)
    # Without its end, a line's last number may lack digits.
    if not text[position:].startswith("\n"):
        raise Truncated("the last line has no end")
    sound.checked(fields, COLUMNS)
    _agree(fields, text)
    return fields


def _agree(fields: Fields, text: str) -> None:
    """Raise Truncated if what the report says twice is not the same."""
    samples = len(_samples(text))
    sound.equal("the samples", samples, "the summary's", fields["reply_rate_samples"])
    by_status = sum(fields[f"replies_{digit}xx"] for digit in range(1, 6))
    sound.equal("replies by status", by_status, "all replies", fields["replies"])
    errors = [name for name in fields if name.startswith("errors_") and name != "errors_total"]
    of_all = fields["errors_total"]
    sound.equal("errors by kind", sum(fields[name] for name in errors), "all errors", of_all)
    connections, most = (
        _histogram(text)["count"].sum(),
        min(fields["connections"], fields["replies"]),
    )
    if connections > most:
        raise Truncated(f"the histogram has {connections} connections, of {most} at most")


def _histogram(text: str) -> pl.DataFrame:
    _, _, after = text.partition(_BINS_BEGIN)
    rows = []
    for line in after.split("\n")[1:]:
        if not line.startswith(" "):
            break
        # Bins that nobody fell into are a colon.
        if line.strip() == ":":
            continue
        found = _BIN.match(line)
        if not found or max(map(len, found.groups())) > _DIGITS:
            raise Truncated(f"no bin of the histogram: {line[:40]!r}")
        ms, us, count = map(int, found.groups())
        rows.append(("connection_time", ms * 1000 + us, count))
    return pl.DataFrame(rows, schema=histogram.SCHEMA, orient="row")


# How several clients' fields become one, in the order of COLUMNS; what is not here adds up.
_LEAST = {"connection_time_min_us", "client_cpu_total_percent"}
_MOST = {"test_duration_us", "connection_time_max_us"}
# Mean -> what it is a mean over.
_MEANS = {
    "connection_time_avg_us": "connections_answered",
    "connect_time_avg_us": "connections",
    "connection_length_replies": "connections",
    "request_size_bytes": "requests",
    "response_time_avg_us": "replies",
    "transfer_time_avg_us": "replies",
    **{f"reply_{part}_bytes": "replies" for part in ("header", "content", "footer", "total")},
}


def _merged(parts: list[Fields], report: Report) -> Fields:
    bins = [_histogram(text) for text in report]
    answered = [frame["count"].sum() for frame in bins]
    fields: Fields = {}
    for name in parts[0]:
        known = [part[name] for part in parts if part[name] is not None]
        if not known or name in UNKNOWN_OF_SEVERAL:
            fields[name] = None
        elif name in _MEANS:
            over = _MEANS[name]
            weights = answered if over == "connections_answered" else [p[over] or 0 for p in parts]
            fields[name] = _mean(name, parts, weights)
        else:
            combine = min if name in _LEAST else max if name in _MOST else sum
            fields[name] = combine(known)
    together = histogram.merge(bins)
    fields["connection_time_median_us"] = histogram.quantile_us(together, 0.5)
    fields["connection_time_stddev_us"] = _stddev_us(parts, answered)
    for what, count in (("connection", "connections"), ("request", "requests")):
        # Rates add up where the clients start together; a period is a rate's inverse.
        rate = fields[f"{what}_rate_rps"]
        fields[f"{what}_period_us"] = round(1e6 / rate) if rate and fields[count] else None
    rates = reply_rates(report)
    fields["reply_rate_samples"] = len(rates)
    fields |= {
        f"reply_rate_{name}_rps": of(rates) if rates else 0.0
        for name, of in (("min", min), ("avg", fmean), ("max", max), ("stddev", pstdev))
    }
    return fields


def _mean(name: str, parts: list[Fields], weights: list[int]) -> int | float | None:
    both = [(part[name], n) for part, n in zip(parts, weights) if part[name] is not None]
    total = sum(n for _, n in both)
    mean = sum(value * n for value, n in both) / total if total else None
    return round(mean) if mean is not None and COLUMNS[name] == pl.Int64 else mean


def _stddev_us(parts: list[Fields], answered: list[int]) -> int | None:
    """Return the deviation of all from their common mean, of each part's own."""
    known = [
        (n, part["connection_time_avg_us"], part["connection_time_stddev_us"])
        for part, n in zip(parts, answered)
        if n and part["connection_time_stddev_us"] is not None
    ]
    total = sum(n for n, _, _ in known)
    if not total:
        return None
    mean = sum(n * average for n, average, _ in known) / total
    squares = sum(n * (stddev**2 + (average - mean) ** 2) for n, average, stddev in known)
    return round((squares / total) ** 0.5)
