"""roundtrip: the command line and the report of clients/roundtrip (see its --help).

An experiment's `load` for it has `request` (the bytes sent, as in `conformance`), `connections`,
`timeout_s`, and `reply_bytes` if the first exchange is not to tell it.
"""

import re

import polars as pl

from deathmatch.errors import Truncated

# From this share of a CPU on, the client, not the server, may set the rate.
CPU_LIMIT_PERCENT = 95
# Later than this for one send in twenty, by the client's own fault, and the latencies that it
# reports are its own too. Beyond, the lag's 99th percentile stands beside that of the latency.
SEND_LAG_LIMIT_US = 1000

HISTOGRAM_SCHEMA = {"quantity": pl.String, "time_us": pl.Int64, "count": pl.Int64}

_FAILURES = ("client_timeout", "connection_refused", "connection_reset", "connection_closed",
             "answer_different", "other")  # fmt: skip

# Every line of the report's head, in its order.
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
}

# What the experiment's plan says already, and the report's own version.
_ELSEWHERE = ("roundtrip", "offered_rate_rps", "offered_duration_us")

SCHEMA = {name: kind for name, kind in _HEAD.items() if name not in _ELSEWHERE} | {
    "client_cpu_total_percent": pl.Float64,
    "send_lag_p95_us": pl.Int64,
    "send_lag_p99_us": pl.Int64,
}


def command(host: str, port: int, load: dict, rate_rps: int, duration_s: float) -> list[str]:
    """Return the command line for one offered rate in requests per second; 0 is closed loop."""
    words = [
        "roundtrip", f"--host={host}", f"--port={port}", f"--request={_escaped(load['request'])}",
        f"--connections={load['connections']}", f"--rate={rate_rps:g}",
        f"--duration={duration_s:g}", f"--timeout={load['timeout_s']:g}",
    ]  # fmt: skip
    return words + ([f"--reply-bytes={load['reply_bytes']}"] if "reply_bytes" in load else [])


def idle_command(host: str, port: int, load: dict, connections: int) -> list[str]:
    """Return the command line that holds idle connections until its standard input ends."""
    one = command(host, port, load | {"connections": 1}, 0, 1)
    return [*one, f"--idle={connections}"]


def _escaped(request: str) -> str:
    named = {"\r": r"\r", "\n": r"\n", "\t": r"\t", "\\": r"\\"}
    return "".join(
        named.get(character)
        or (character if " " <= character <= "~" else rf"\x{ord(character):02x}")
        for character in request
    )


def time_limit_s(load: dict, duration_s: float) -> float:
    """Return when a run has wedged: two exchanges, the connections, the test, its stragglers."""
    return duration_s + 4 * load["timeout_s"] + 5


def parse(report: str, duration_s: float) -> dict[str, int | float | str | None]:
    """Return the report's fields, named and typed as in SCHEMA, and three more:

    `client_cpu_total_percent`, of one CPU over the whole test, and `send_lag_p95_us` and
    `send_lag_p99_us`, percentiles of how late the client sent by its own fault (upper bound of
    its bin; None in closed loop). `duration_s` is not used: the report knows it. Raises Truncated
    if any line is missing.
    """
    lines = report.splitlines()
    if not report.endswith("\nend\n"):
        raise Truncated("the report has no last line")
    fields: dict[str, int | float | str | None] = {}
    for number, (name, kind) in enumerate(_HEAD.items()):
        found, separator, text = lines[number].partition(": ")
        if found != name or not separator:
            raise Truncated(f"line {number + 1} is {lines[number]!r}, not {name}")
        fields[name] = text if kind == pl.String else (float if kind == pl.Float64 else int)(text)
    bins = _bins(report)
    if sum(bin[3] for bin in bins if bin[0] == "service_time") != fields["replies"]:
        raise Truncated("the service times are not as many as the replies")
    cpu_us = fields["client_cpu_user_us"] + fields["client_cpu_system_us"]
    fields["client_cpu_total_percent"] = 100 * cpu_us / fields["test_duration_us"]
    lags = [(upper, count) for quantity, _, upper, count in bins if quantity == "send_lag"]
    fields |= {f"send_lag_p{q}_us": _quantile(lags, q / 100) for q in (95, 99)}
    return {name: fields[name] for name in SCHEMA}


def histogram(report: str) -> pl.DataFrame:
    """Return the histograms of service_time, latency and send_lag (HISTOGRAM_SCHEMA).

    `time_us` is a bin's centre, rounded; the report's own bins are at most 0.8 % wide.
    """
    rows = [
        (quantity, round((lower + upper) / 2), count)
        for quantity, lower, upper, count in _bins(report)
    ]
    frame = pl.DataFrame(rows, schema=HISTOGRAM_SCHEMA, orient="row")
    return frame.group_by("quantity", "time_us", maintain_order=True).agg(pl.col("count").sum())


def _bins(report: str) -> list[tuple[str, float, float, int]]:
    found = re.findall(r"^([a-z_]+) ([\d.]+) ([\d.]+) (\d+)$", report, re.MULTILINE)
    return [(quantity, float(low), float(high), int(count)) for quantity, low, high, count in found]


def _quantile(bins: list[tuple[float, int]], q: float) -> int | None:
    wanted, seen = q * sum(count for _, count in bins), 0
    for upper_us, count in bins:
        seen += count
        if seen >= wanted:
            return round(upper_us)
    return None


def actual_rate_rps(fields: dict, during: pl.DataFrame, spec: dict) -> float | None:
    """Return the mean rate of requests that it sent in the `duration_s` it had."""
    sent = fields["requests_offered_window"]
    return None if sent is None else sent / spec["duration_s"]


def limited(fields: dict, offered_rate_rps: int, actual_rate_rps: float | None) -> bool:
    """Return whether a point shows the client's limits: no CPU left, or sends late by itself.

    Fewer requests than offered do not: a connection sends none before it has its answer.
    """
    if actual_rate_rps is None:
        return True
    late_us = fields["send_lag_p95_us"] or 0
    return fields["client_cpu_total_percent"] >= CPU_LIMIT_PERCENT or late_us > SEND_LAG_LIMIT_US
