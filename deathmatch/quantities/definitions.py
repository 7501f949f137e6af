"""The quantities by name, for claims, chapters, the explorer and `deathmatch measure`.

Rules in claims.toml use these names. A change of a definition changes every page.
"""

from collections.abc import Callable, Collection

import polars as pl

from deathmatch.quantities.quantity import (
    ALL_ANSWERED,
    DRAIN,
    RATE,
    REPLY,
    WRONG,
    Aggregate,
    Kind,
    Mean,
    Points,
    Quantity,
    Quotient,
    needed_samples,
)

RAW_HEAD_BYTES = 32  # Day 2011: key 16, ttl 8, hide 8; the body comes after it
CLOCK_STEP_US = 100  # of the mean response time that httperf prints
HISTOGRAM_STEP_US = 10  # of httperf's histogram of connection times
NET_IO_STEP = 102.4  # bytes per second: httperf prints tenths of a KB
PAGE_BYTES = 4096  # resident memory is counted in pages
SELECT_RANGE = 1024  # descriptors that select can wait for
SHARED_OUT = "server_pss_bytes_max"
DIED = pl.col("server_state").str.starts_with("died")
"""Whether the server of a point ended without being stopped."""

ENDED_IN_CHECKS = (pl.col("outcome") == "answers wrongly") & pl.col("reason").str.contains(
    "it ended (", literal=True
)
"""Whether the server of a trial ended during its checks, in the words of `conformance`."""

_TOGETHER = "all points of a trial together"
_MEAN = "mean over the points of a trial"
_LARGEST = "largest over the points of a trial"


def hardest(rates: Collection[int]) -> int:
    """Return the most demanding offered rate: 0, the closed loop, else the highest."""
    return 0 if 0 in rates else max(rates)


def hardest_of(rates: pl.Expr) -> pl.Expr:
    """Return `hardest` of offered rates as an aggregate; null without one."""
    return pl.when((rates == 0).any()).then(0).otherwise(rates.max())


HARDEST = hardest_of(pl.col(RATE))

ANSWERED = (pl.col(RATE) > 0) & (pl.col(REPLY) >= ALL_ANSWERED * pl.col(RATE))
"""Whether a point was offered a rate and answered it in full."""

IN_FULL = (ANSWERED & (pl.col(RATE) == HARDEST)).any()
"""Whether a trial answered in full the highest rate that it was offered: no overload."""

_DUE = pl.col(RATE) * pl.col("duration_us") / 1e6


def _over(counted: pl.Expr, over: pl.Expr) -> pl.Expr:
    """Return a quotient; null over 0."""
    return pl.when(over != 0).then(counted / over)


def _missed(replies: pl.Expr, due: pl.Expr) -> pl.Expr:
    """Return the share of due requests without a good answer; null if none was due."""
    return pl.when(due != 0).then(pl.max_horizontal(pl.lit(0.0), 1 - replies / due))


_ERROR_RATIO = _missed(pl.col("replies").sum(), _DUE.sum())


def _errors(columns: Collection[str]) -> pl.Expr:
    return pl.sum_horizontal(pl.lit(0), *(pl.col(name).sum() for name in sorted(columns)))


def _wrong_ratio(columns: Collection[str]) -> pl.Expr:
    known = WRONG in columns
    return _over(_errors({WRONG}), _DUE.sum()) if known else pl.lit(None, pl.Float64)


def _timeout_share(columns: Collection[str]) -> pl.Expr:
    timeouts = {"errors_client_timeout", "errors_socket_timeout"}
    total = {"errors_total", *({WRONG} & {*columns})}
    return _over(_errors(timeouts & {*columns}), _errors(total))


def _bytes_per_message(account: str) -> pl.Expr:
    """Return by how much an account of memory grew for each message; null without two messages."""
    known = pl.col(account).is_not_null()
    messages = pl.col("messages").filter(known)
    kept_bytes = pl.col(account).filter(known).sort_by(messages)
    return _over(kept_bytes.last() - kept_bytes.first(), messages.max())


_RAW_BYTES = RAW_HEAD_BYTES + pl.col("body_bytes").first()


def _step_of_overhead(points: pl.DataFrame) -> float:
    return PAGE_BYTES / points["messages"].max() / points.select(_RAW_BYTES).item()


def _step_of_bytes(account_step: int) -> Callable[[pl.DataFrame], float]:
    """Return the step of memory per message by an account that is kept in so many bytes."""
    return lambda points: account_step / points["messages"].max()


def _largest_memory(columns: Collection[str]) -> pl.Expr:
    known = (name for name in (SHARED_OUT, "server_rss_bytes_max") if name in columns)
    return pl.coalesce(*(pl.col(name).max() for name in known), pl.lit(None, pl.Int64))


def _happened(event: pl.Expr) -> Aggregate:
    """Return 1 if something happened at any point of a trial, else 0."""
    return Aggregate(event.any().cast(pl.Float64))


# No sample shows how many descriptors a server held as it died.
_HELD = pl.col("server_descriptors_max").max()
_OUT_OF_SELECT_RANGE = pl.when(_HELD.is_not_null() | DIED.any()).then(
    (DIED.any() | (_HELD >= SELECT_RANGE).fill_null(False)).cast(pl.Float64)
)


def _latency(columns: Collection[str], percent: int) -> pl.Expr:
    """Return a latency's mean over points; a quantile among lost messages is at least DRAIN.

    Using that bound never overstates a latency, and lets claims of long latencies be decided.
    Points with too few messages for the quantile do not count.
    """
    column = f"message_latency_p{percent}_us"
    if column not in columns:
        return pl.lit(None, pl.Float64)
    carried = pl.col("messages_due") >= needed_samples(percent / 100)
    return pl.col(column).cast(pl.Float64).fill_null(pl.col(DRAIN)).filter(carried).mean()


OVERLOAD = "reply_rate_overload_rps"
_OF_HISTOGRAM = {"mean": "mean", "p50": "median", "p99": "99th percentile of the"}

CPU_PER_REPLY = Quantity(
    "cpu_us_per_reply", "CPU per reply", "µs",
    "CPU time of the server's processes over replies", Quotient("server_cpu_ns", 1e-3), _TOGETHER,
)  # fmt: skip
REPLIES_PER_CPU_SECOND = Quantity(
    "replies_per_cpu_second", "replies for each CPU-second", "",
    "replies over CPU time of the server's processes", Quotient("replies", 1e9, "server_cpu_ns"),
    _TOGETHER, higher_is_better=True,
)  # fmt: skip
SWITCHES_PER_REPLY = Quantity(
    "context_switches_per_reply", "context switches per reply", "",
    "growth of the machine's context switches over replies", Quotient("context_switches"),
    _TOGETHER,
)  # fmt: skip
INTERRUPTS_PER_REPLY = Quantity(
    "interrupts_per_reply", "interrupts per reply", "",
    "growth of the machine's interrupts over replies", Quotient("interrupts"), _TOGETHER,
)  # fmt: skip
LARGEST_RSS = Quantity(
    "server_rss_bytes", "largest resident set", "B",
    "largest resident memory of the server's processes, pages that they share counted once; in "
    "older data once for each process", Aggregate(_largest_memory), _LARGEST,
)  # fmt: skip
CAPACITY = Quantity(
    "capacity_rps", "capacity", "req/s",
    "rate, found by a search from a fresh start, up to which half of what is due or more is "
    "answered within 10 ms", Aggregate(pl.col("capacity_rps").first()), over_rates=False,
    points=Points.SEARCHES, higher_is_better=True,
)  # fmt: skip
REPLY_RATE_OVERLOAD = Quantity(
    OVERLOAD, "reply rate in overload", "req/s",
    "replies over the time in which requests were offered, at the highest rate that each of those "
    "compared was offered, or at a multiple of its capacity; of a closed loop, what that answered",
    Aggregate(pl.col(REPLY).filter(pl.col(RATE) == HARDEST).mean()),
    whole_sweep=True, higher_is_better=True,
)  # fmt: skip
BYTES_PER_MESSAGE = Quantity(
    "bytes_per_message", "memory per message", "B",
    "growth of the process's memory over queued messages, divided by their number",
    Aggregate(_bytes_per_message("rss_bytes")), over_rates=False, step=_step_of_bytes(PAGE_BYTES),
)  # fmt: skip
OWN_BYTES_PER_MESSAGE = Quantity(
    "own_bytes_per_message", "memory per message by the runtime's account", "B",
    "growth of what the runtime itself says that it holds over queued messages, divided by "
    "their number", Aggregate(_bytes_per_message("runtime_bytes")),
    over_rates=False, step=_step_of_bytes(1),
)  # fmt: skip
FAILED_CONNECTIONS = Quantity(
    "failed_percent", "failed connections", "%", "connections that failed, of all attempted",
    Quotient("errors_total", 100, over="connections"), _TOGETHER,
)  # fmt: skip
RESPONSE_TIME = Quantity(
    "response_time_mean_us", "mean response time", "µs", "mean time from a request to its reply",
    Mean("response_time_avg_us"), _MEAN, points=Points.STEADY, step=lambda _: CLOCK_STEP_US,
)  # fmt: skip
CONNECTION_TIME = Quantity(
    "connection_time_ms", "median connection time", "ms",
    "median time from the first SYN of a connection to its end",
    Mean("connection_time_median_us", 1e-3), _MEAN, points=Points.STEADY,
)  # fmt: skip
MEMORY_PER_CONNECTION = Quantity(
    "memory_kib", "memory per connection", "KiB",
    "resident set while all connections were held, less that before the warm-up, over connections",
    Mean("server_rss_per_connection_bytes", 1 / 1024), _MEAN,
)  # fmt: skip

_ALL = (
    CPU_PER_REPLY, REPLIES_PER_CPU_SECOND, SWITCHES_PER_REPLY, INTERRUPTS_PER_REPLY, LARGEST_RSS,
    CAPACITY, REPLY_RATE_OVERLOAD, BYTES_PER_MESSAGE, FAILED_CONNECTIONS, RESPONSE_TIME,
    CONNECTION_TIME, MEMORY_PER_CONNECTION,
    Quantity(
        "reply_rate_rps", "reply rate", "req/s",
        "replies over the time in which requests were offered", Mean(REPLY), _MEAN,
        higher_is_better=True,
    ),
    Quantity(
        "error_ratio", "error ratio", "",
        "requests due that got no good answer, whatever the cause, over requests due",
        Aggregate(_ERROR_RATIO), _TOGETHER, kind=Kind.SHARE,
    ),
    Quantity(
        "wrong_ratio", "wrong answers", "",
        "answers with another status or length than expected, over requests due",
        Aggregate(_wrong_ratio),
        _TOGETHER, kind=Kind.SHARE,
    ),
    Quantity(
        "timeout_share", "timeout share", "", "timeouts over all errors and wrong answers",
        Aggregate(_timeout_share), _TOGETHER, kind=Kind.SHARE,
    ),
    *(
        Quantity(
            f"connection_time_{name}_us", f"{words} connection time", "µs",
            f"{words} time from the first SYN of a connection to its end, with all its calls, of "
            "the client's histogram in steps of 10 µs", Mean(f"connection_time_{name}_us"), _MEAN,
            of_histogram="connection_time", step=lambda _: HISTOGRAM_STEP_US,
        )
        for name, words in _OF_HISTOGRAM.items()
    ),
    *(
        Quantity(
            f"latency_{name}_us", f"{words} latency", "µs",
            f"{words} time from when a request was due to its reply, as roundtrip sees it",
            Mean(f"latency_{name}_us"), _MEAN, of_histogram="latency",
        )
        for name, words in _OF_HISTOGRAM.items()
    ),
    Quantity(
        "died", "share of trials in which it died", "",
        "1 if the server died during the sweep, else 0",
        _happened(DIED), over_rates=False,
        points=Points.ENDING, kind=Kind.OUTCOME,
    ),
    Quantity(
        "out_of_select_range", "share of trials in which it left select's range", "",
        "1 if the server held 1,024 descriptors or more, or died, else 0",
        Aggregate(_OUT_OF_SELECT_RANGE),
        over_rates=False, points=Points.ENDING, kind=Kind.OUTCOME,
    ),
    Quantity(
        "least_busy_process_share", "share of the least busy process", "",
        "CPU time of the least busy of a server's processes, or threads, over that of all",
        Mean("least_busy_process_share"), _MEAN, kind=Kind.SHARE,
    ),
    Quantity(
        "ended_in_checks", "share of trials in which it ended before its load", "",
        "1 if the server ended by itself while its answers were checked, else 0",
        _happened(ENDED_IN_CHECKS), over_rates=False,
        points=Points.TRIALS, kind=Kind.OUTCOME,
    ),
    Quantity(
        "network_bytes_per_s", "network traffic", "B/s",
        "bytes sent and received by the client, as httperf's net I/O", Mean("net_io_bytes_per_s"),
        _MEAN, step=lambda _: NET_IO_STEP,
    ),
    Quantity(
        "concurrent_connections", "concurrent connections", "",
        "most connections open at once, as httperf reports it", Mean("concurrent_connections"),
        _MEAN,
    ),
    Quantity(
        "connections_held", "connections held", "",
        "WebSocket connections held to the end of the run", Mean("outcome_completed"), _MEAN,
        kind=Kind.COUNT, higher_is_better=True,
    ),
    Quantity(
        "connection_timeouts", "connection timeouts", "",
        "TCP connections that took more than 2 s, of all that were tried",
        Mean("connection_timeouts"), _MEAN, kind=Kind.COUNT,
    ),
    Quantity(
        "handshake_time_mean_us", "mean handshake time", "µs",
        "mean time of the WebSocket upgrade, from the intended connect",
        Mean("handshake_time_mean_us"), _MEAN,
    ),
    Quantity(
        "message_latency_mean_us", "mean message latency", "µs",
        "mean time from a message's intended send to its echo", Mean("message_latency_mean_us"),
        _MEAN, points=Points.STEADY,
    ),
    Quantity(
        "message_latency_p50_us", "median message latency", "µs",
        "median time from a message's intended send to its echo",
        Aggregate(lambda known: _latency(known, 50)), _MEAN, points=Points.STEADY,
    ),
    Quantity(
        "message_latency_p95_us", "95th percentile of the message latency", "µs",
        "95th percentile of the time from a message's intended send to its echo",
        Aggregate(lambda known: _latency(known, 95)), _MEAN, points=Points.STEADY,
    ),
    Quantity(
        "message_latency_growth", "message latency growth", "",
        "median message latency of the run's last fifth (a minute of five) over that of its first",
        Mean("message_latency_growth"), _MEAN,
    ),
    OWN_BYTES_PER_MESSAGE,
    Quantity(
        "client_step_us", "step of the client's pacing", "µs",
        "time between two turns at which the client sends the messages that are due; 0: each is "
        "sent when it is due", Mean("client_step_us"), _MEAN,
    ),
    Quantity(
        "client_hold_us", "hold of the client's pacing", "µs",
        "time that a message may wait for the next ones of its connection, to be sent with them",
        Mean("client_hold_us"), _MEAN,
    ),
    Quantity(
        "memory_overhead", "memory overhead", "",
        "bytes_per_message beyond the raw message, over the raw message",
        Aggregate(_bytes_per_message("rss_bytes") / _RAW_BYTES - 1),
        over_rates=False, step=_step_of_overhead,
    ),
)  # fmt: skip
QUANTITIES = {quantity.name: quantity for quantity in _ALL}
"""Every quantity by its name."""
