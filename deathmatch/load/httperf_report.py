"""The reports that httperf prints (version 0.9.0 with our patch), of one client and of several."""

import math
import re
from operator import itemgetter
from statistics import fmean, pstdev

import polars as pl

from deathmatch.errors import Truncated
from deathmatch.load import generator, histogram
from deathmatch.load.generator import FIRST_WRONG, Fields, Texts

REPLY_INTERVAL_S = 0.5  # RATE_INTERVAL in clients/httperf/deathmatch.patch

UNKNOWN_OF_SEVERAL = {
    "connect_burst_connections": "bursts of several clients may fall together, or apart",
    "concurrent_connections": "the clients' peaks may lie at different moments",
    "client_cpu_user_percent": "shares of different CPUs",
    "client_cpu_system_percent": "shares of different CPUs",
}

# Replies of status 2xx that are cut, too long or followed by more; and those with wrong content of
# the right length, or a status other than 200.
WRONG_LENGTH, WRONG_CONTENT = "replies_wrong_length", "replies_wrong_content"
# The classes of wrong answers.
WRONG_REPLIES = [
    "replies_1xx", "replies_3xx", "replies_4xx", "replies_5xx", WRONG_LENGTH, WRONG_CONTENT,
]  # fmt: skip

# A number as httperf prints it: %f gives inf or nan for a huge or undefined value, and -0.0 for one
# just below zero.
_N = r"(\d+(?:\.\d+)?|-0+(?:\.0+)?|-?inf|-?nan)"
# A sample of the reply rate, which is padded with spaces.
_SAMPLE = re.compile(rf"^reply-rate = {_N} *$", re.ASCII)
_BEGIN = "Maximum connect burst length:"
_BINS_BEGIN = "Connection lifetime histogram"
_BIN = re.compile(r"^ +(\d+)\.(\d{3}) (\d+)$", re.ASCII)
# The longest number of a histogram that is accepted, so that the sum of all bins fits a column.
_DIGITS = 12

# The time between two polls, by which a reply may be read late.
LOOKS = ["look_interval_max_us", "look_interval_mean_us"]
# Columns that only roundtrip in httperf's place fills (load.roundtrip_calls). httperf counts these
# errors in other classes, and wrong answers as replies.
LIGHT = (
    "send_lag_p95_us", "send_lag_p99_us", "errors_connection_closed", "errors_wrong_status",
    "errors_wrong_length", "errors_answer_cut", "errors_answer_different", "answers_unasked",
    "informational",
)  # fmt: skip
# Columns that are unknown if there was no reply.
OF_REPLIES = [
    *(f"connection_time_{q}_us" for q in ("min", "avg", "max", "median", "stddev")),
    "response_time_avg_us", "transfer_time_avg_us",
    *(f"reply_{part}_bytes" for part in ("header", "content", "footer", "total")),
]  # fmt: skip
_LOOKS_LINE = re.compile(
    rf"^Time between looks at sockets \[ms\]: longest {_N} mean {_N}$", re.MULTILINE | re.ASCII
)

# httperf prints this at the first connect(2) that fails with EADDRNOTAVAIL, if the local ports are
# used up. It counts such connections as `other`.
_NO_PORT = "httperf: connection failed with unexpected error 99\n"
_WRONG_LINE = re.compile(r"^Wrong replies: length (\d+) content (\d+)$", re.MULTILINE | re.ASCII)
_FIRST_WRONG_LINE = re.compile(r"^First wrong reply: ([ -~]*)$", re.MULTILINE | re.ASCII)

# Each pattern must match once, in the report's order; columns are named by the unit of the tables.
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
    (rf"Net I/O: {_N} KB/s \({_N}\*10\^6 bps\)", ["net_io_bytes_per_s", "net_io_megabit_per_s"]),
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
} | {
    "reply_rate_offered_window_rps": pl.Float64,
    **dict.fromkeys((*LOOKS, *LIGHT, WRONG_LENGTH, WRONG_CONTENT), pl.Int64),
    FIRST_WRONG: pl.String,
}


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


def reply_rates(report: Texts, duration_s: float | None = None) -> list[float]:
    """Return the reply-rate samples in replies per second, one each REPLY_INTERVAL_S.

    Samples of several clients are added, until the first client ends. With `duration_s`, only
    samples that end within this time are returned.
    """
    most = None if duration_s is None else int(duration_s / REPLY_INTERVAL_S)
    return [sum(at_once) for at_once in zip(*map(_samples, report))][:most]


def of_reply_rates(rates: list[float]) -> Fields:
    """Return the fields from reply-rate samples; the statistics are 0 without a sample."""
    named = (("min", min), ("avg", fmean), ("max", max), ("stddev", pstdev))
    statistics = {f"reply_rate_{name}_rps": of(rates) if rates else 0.0 for name, of in named}
    return statistics | {"reply_rate_samples": len(rates)}


def _samples(text: str) -> list[float]:
    found = [_SAMPLE.match(line) for line in text.split("\n") if line.startswith("reply-rate")]
    values = [float(match[1]) if match else math.nan for match in found]
    if not all(map(math.isfinite, values)):
        raise Truncated("a sample of the reply rate is not a number")
    return values


def fields_of(text: str) -> Fields:
    """Return the fields of one client's report, named and typed as in COLUMNS.

    Raises Truncated if a line is missing, or no number, or contradicts another.
    """
    fields: Fields = {}
    position = 0
    if text.count(_BEGIN) > 1:
        raise Truncated("it holds more than one report")
    for pattern, columns in _LINES:
        match = re.compile(f"^{pattern}", re.MULTILINE | re.ASCII).search(text, position)
        if not match:
            raise Truncated(f"no line {pattern.split(':')[0]!r} after character {position}")
        position = match.end()
        for column, found in zip(columns, match.groups()):
            fields[column] = _value(column, found)
    if _NO_PORT in text:
        fields["errors_address_unavailable"] += fields["errors_other"]
        fields["errors_other"] = 0
    # The last number of a line that is cut may lack digits.
    if not text[position:].startswith("\n"):
        raise Truncated("the last line has no end")
    for columns, line in ((LOOKS, _LOOKS_LINE), ((WRONG_LENGTH, WRONG_CONTENT), _WRONG_LINE)):
        found = line.search(text)
        for column, value in zip(columns, found.groups() if found else (None, None)):
            fields[column] = None if value is None else _value(column, value)
    fields |= dict.fromkeys(LIGHT)
    first = _FIRST_WRONG_LINE.search(text)
    fields[FIRST_WRONG] = first and first[1]
    if not fields["replies"]:
        # httperf prints 0 for the mean of nothing.
        fields |= dict.fromkeys(OF_REPLIES)
    generator.checked(fields, COLUMNS)
    _agree(fields, text)
    return fields


def _agree(fields: Fields, text: str) -> None:
    """Raise Truncated if the report contradicts itself."""
    samples = len(_samples(text))
    generator.equal("the samples", samples, "the summary's", fields["reply_rate_samples"])
    by_status = sum(fields[f"replies_{digit}xx"] for digit in range(1, 6))
    generator.equal("replies by status", by_status, "all replies", fields["replies"])
    errors = [
        name for name in fields
        if name.startswith("errors_") and name != "errors_total" and name not in LIGHT
    ]  # fmt: skip
    of_all = fields["errors_total"]
    generator.equal("errors by kind", sum(fields[name] for name in errors), "all errors", of_all)
    wrong = (fields[WRONG_LENGTH] or 0) + (fields[WRONG_CONTENT] or 0)
    generator.at_least(
        "the replies with 2xx", fields["replies_2xx"], "the wrong ones of them", wrong
    )
    connections, most = (
        lifetimes(text)["count"].sum(),
        min(fields["connections"], fields["replies"]),
    )
    if connections > most:
        raise Truncated(f"the histogram has {connections} connections, of {most} at most")


def lifetimes(text: str) -> pl.DataFrame:
    """Return one client's histogram of connection lifetimes; Truncated for an invalid line."""
    _, _, after = text.partition(_BINS_BEGIN)
    rows = []
    for line in after.split("\n")[1:]:
        if not line.startswith(" "):
            break
        # A colon stands for empty bins.
        if line.strip() == ":":
            continue
        found = _BIN.match(line)
        if not found or max(map(len, found.groups())) > _DIGITS:
            raise Truncated(f"no bin of the histogram: {line[:40]!r}")
        ms, us, count = map(int, found.groups())
        rows.append(("connection_time", ms * 1000 + us, count))
    return pl.DataFrame(rows, schema=histogram.SCHEMA, orient="row")


# How the fields of several clients are combined, if they are not added.
_COMBINED = {
    "connection_time_min_us": min, "client_cpu_total_percent": min,
    "test_duration_us": max, "connection_time_max_us": max, **dict.fromkeys(LOOKS, max),
    FIRST_WRONG: itemgetter(0),
}  # fmt: skip
# Mean -> the count that it is taken over.
_MEANS = {
    "connection_time_avg_us": "connections_answered",
    "connect_time_avg_us": "connections",
    "connection_length_replies": "connections",
    "request_size_bytes": "requests",
    "response_time_avg_us": "replies",
    "transfer_time_avg_us": "replies",
    **{f"reply_{part}_bytes": "replies" for part in ("header", "content", "footer", "total")},
}


def merged(parts: list[Fields], report: Texts) -> Fields:
    """Return the fields of several clients as those of one, given their fields and reports."""
    bins = [lifetimes(text) for text in report]
    answered = [frame["count"].sum() for frame in bins]
    fields = generator.combined(parts, _COMBINED) | dict.fromkeys(UNKNOWN_OF_SEVERAL)
    for name, over in _MEANS.items():
        weights = answered if over == "connections_answered" else [p[over] or 0 for p in parts]
        fields[name] = _mean(name, parts, weights)
    together = histogram.merge(bins)
    fields["connection_time_median_us"] = histogram.quantile_us(together, 0.5)
    fields["connection_time_stddev_us"] = _stddev_us(parts, answered)
    for what, count in (("connection", "connections"), ("request", "requests")):
        # Rates add up where the clients start together; a period is a rate's inverse.
        rate = fields[f"{what}_rate_rps"]
        fields[f"{what}_period_us"] = round(1e6 / rate) if rate and fields[count] else None
    return fields | of_reply_rates(reply_rates(report))


def _mean(name: str, parts: list[Fields], weights: list[int]) -> int | float | None:
    both = [(part[name], n) for part, n in zip(parts, weights) if part[name] is not None]
    total = sum(n for _, n in both)
    mean = sum(value * n for value, n in both) / total if total else None
    return round(mean) if mean is not None and COLUMNS[name] == pl.Int64 else mean


def _stddev_us(parts: list[Fields], answered: list[int]) -> int | None:
    """Return the standard deviation of all parts together, from each part's mean and deviation."""
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
