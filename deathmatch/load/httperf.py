"""httperf: its command line and its report (httperf(1), version 0.9.0 with our patch)."""

import math
import re

import polars as pl

from deathmatch.errors import Truncated
from deathmatch.measure.sampler import START_UP_S

REPLY_INTERVAL_S = 0.5  # RATE_INTERVAL in clients/httperf/deathmatch.patch

# Below this share of the offered connections actually opened in time, the client, or the CPU
# it shares, is what was measured.
CLIENT_LIMIT = 0.97
# httperf polls without pause, so that it uses all of a CPU that it has for itself (1998 paper);
# with less than this share, something else used the CPU too.
CPU_SHARE_PERCENT = 75

# Errors of the client's own making, as columns of SCHEMA.
OWN_ERRORS = [
    f"errors_{what}"
    for what in ("descriptors_unavailable", "address_unavailable", "file_table_full")
]

HISTOGRAM_SCHEMA = {"quantity": pl.String, "time_us": pl.Int64, "count": pl.Int64}

# A number as httperf prints it: %f of a huge or undefined value gives inf or nan.
_N = r"(-?[\d.]+|-?inf|-?nan)"

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


SCHEMA = {
    column: pl.Int64 if _is_whole(column) else pl.Float64
    for _, columns in _LINES
    for column in columns
} | {"reply_rate_offered_window_rps": pl.Float64}


def _value(column: str, text: str) -> int | float | None:
    number = float(text)
    if not math.isfinite(number):
        return None
    if column.endswith("_us"):
        in_seconds = column == _TEST_DURATION or column.startswith(_CPU)
        number *= 1_000_000 if in_seconds else 1_000
    if column == _NET_IO:
        number *= 1024
    return round(number) if SCHEMA[column] == pl.Int64 else number


def command(host: str, port: int, load: dict, rate_rps: int, duration_s: float) -> list[str]:
    """Return httperf's command line for one offered rate.

    `rate_rps` counts requests: the connection rate is that over the calls per connection.
    Two -v make it print its samples and its histogram.
    """
    calls = load["requests_per_connection"]
    rate = rate_rps / calls
    words = [
        "httperf", "-v", "-v",
        f"--server={host}", f"--port={port}", f"--uri={load['uri']}",
        f"--rate={rate:g}", f"--num-conns={max(1, round(rate * duration_s))}",
        f"--num-calls={calls}",
        f"--timeout={load['timeout_s']:g}",
    ]  # fmt: skip
    return words + (["--add-header=Connection: close\\n"] if calls == 1 else [])


def time_limit_s(load: dict, duration_s: float) -> float:
    """Return when a run has wedged: out of ports or descriptors, httperf never ends by itself."""
    return duration_s + (load["requests_per_connection"] + 1) * load["timeout_s"] + 5


def parse(report: str, duration_s: float) -> dict[str, int | float | None]:
    """Return every field of httperf's report, named and typed as in SCHEMA; undefined ones None.

    Times in us, where httperf prints ms and s; sizes in bytes (its KB has 1024).

    `reply_rate_offered_window_rps` is the mean of the reply-rate samples that lie within the
    offered window of `duration_s`; httperf's own mean also counts the time it waits for
    stragglers. Raises Truncated if any line is missing.
    """
    fields: dict[str, int | float | None] = {}
    position = 0
    for pattern, columns in _LINES:
        match = re.compile(f"^{pattern}", re.MULTILINE).search(report, position)
        if not match:
            raise Truncated(f"no line {pattern.split(':')[0]!r} after character {position}")
        position = match.end()
        for column, text in zip(columns, match.groups()):
            fields[column] = _value(column, text)
    # Without its end, a line's last number may lack digits.
    if not report[position:].startswith("\n"):
        raise Truncated("the last line has no end")
    samples = reply_rates(report)[: max(1, int(duration_s / REPLY_INTERVAL_S))]
    # A run shorter than one interval has no sample.
    fields["reply_rate_offered_window_rps"] = (
        sum(samples) / len(samples) if samples else fields["replies"] / duration_s
    )
    return fields


def reply_rates(report: str) -> list[float]:
    """Return the reply-rate samples in replies per second, one each REPLY_INTERVAL_S."""
    return [float(x) for x in re.findall(r"^reply-rate = ([\d.]+)", report, re.MULTILINE)]


def histogram(report: str) -> pl.DataFrame:
    """Return the connection-time histogram: bin centres in us, bins of 10 us (HISTOGRAM_SCHEMA).

    httperf counts a connection in it once it got at least one reply.
    """
    start = report.find("Connection lifetime histogram")
    rows = re.findall(r"^ +(\d+)\.(\d{3}) (\d+)$", report[max(start, 0) :], re.MULTILINE)
    return pl.DataFrame(
        [("connection_time", int(ms) * 1000 + int(us), int(n)) for ms, us, n in rows],
        schema=HISTOGRAM_SCHEMA,
        orient="row",
    )


def actual_rate_rps(fields: dict, during: pl.DataFrame, spec: dict) -> float | None:
    """Return the mean request rate that the client offered in the `duration_s` it had.

    From the growth of its kernel's ActiveOpens up to the sample nearest to the end of that time
    (`measure.sampler` takes one there), times the calls on a connection; None if there is no sample
    within 5 % of it. httperf's own rates also count its wait for stragglers.
    """
    if len(during) < 2:
        return None
    duration_s = spec["duration_s"]
    time_s = (during["time_us"] - during["time_us"][0]) / 1e6 - START_UP_S
    away_s = (time_s - duration_s).abs()
    nearest = away_s.arg_min()
    if away_s[nearest] > 0.05 * duration_s:
        return None
    opens = during["client_active_opens"]
    return spec["load"]["requests_per_connection"] * (opens[nearest] - opens[0]) / duration_s


def limited(fields: dict, offered_rate_rps: int, actual_rate_rps: float | None) -> bool:
    """Return whether a point shows the client's limits.

    It fell behind, ran out of descriptors or ports, or had to share its CPU.
    """
    starved = sum(fields[error] or 0 for error in OWN_ERRORS)
    late = actual_rate_rps is None or actual_rate_rps < CLIENT_LIMIT * offered_rate_rps
    share = fields["client_cpu_total_percent"]
    return late or starved > 0 or (share is not None and share < CPU_SHARE_PERCENT)
