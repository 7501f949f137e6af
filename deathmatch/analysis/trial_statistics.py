"""What one trial comes to: the statistics by which rules and tables compare variants.

`STATISTICS` has them by the names that claims.toml defines; each takes the points of one trial.
"""

from collections.abc import Callable

import polars as pl

from deathmatch.analysis import stats, views
from deathmatch.analysis.reply_rates import RATE, REPLY
from deathmatch.load import httperf
from deathmatch.plan import files

RAW_HEAD_BYTES = 32  # Day 2011: key 16, ttl 8, hide 8, beside the body


def hardest(points: pl.DataFrame) -> int:
    """Return the offered rate that asks most of a server: 0, the closed loop, else the highest."""
    rates = points[RATE]
    return 0 if (rates == 0).any() else rates.max()


def _due(points: pl.DataFrame) -> float:
    return (points[RATE] * points["duration_us"]).sum() / 1e6


def _per_reply(points: pl.DataFrame, column: str, scale: float = 1) -> float | None:
    known = points.drop_nulls([column, "replies"])
    return scale * known[column].sum() / known["replies"].sum() if known["replies"].sum() else None


def _error_ratio(points: pl.DataFrame) -> float | None:
    due = _due(points)
    return max(0.0, 1 - points["replies"].fill_null(0).sum() / due) if due else None


def _first_error_rate(points: pl.DataFrame) -> float | None:
    ordered = points.sort(RATE)
    failing = [p[RATE][0] for p in ordered.iter_slices(1) if (_error_ratio(p) or 0) > 0.01]
    return float(failing[0]) if failing else float(ordered[RATE].max())


def _mean(points: pl.DataFrame, column: str) -> float | None:
    return points[column].drop_nulls().mean() if column in points.columns else None


def _errors(points: pl.DataFrame, *columns: str) -> int:
    return sum(points[column].fill_null(0).sum() for column in columns)


def _timeout_share(points: pl.DataFrame) -> float | None:
    total = _errors(points, "errors_total")
    timeouts = _errors(points, "errors_client_timeout", "errors_socket_timeout")
    return timeouts / total if total else None


def _client_error_ratio(points: pl.DataFrame) -> float | None:
    due = _due(points)
    return _errors(points, *httperf.OWN_ERRORS) / due if due else None


def _bytes_per_message(points: pl.DataFrame) -> float | None:
    ordered = points.sort("messages")
    grown = ordered["rss_bytes"][-1] - ordered["rss_bytes"][0]
    return grown / ordered["messages"][-1] if ordered["messages"][-1] else None


def _memory_overhead(points: pl.DataFrame) -> float | None:
    each = _bytes_per_message(points)
    return None if each is None else each / (RAW_HEAD_BYTES + points["body_bytes"][0]) - 1


_SHARES = {"p95": 0.95, "p99": 0.99}


def _latency(points: pl.DataFrame, column: str) -> float | None:
    """Return a latency's mean over points; one that lies among lost messages is the drain at least.

    So it is compared with no less than it was, and a claim of long latencies is decided by it.
    Points with too few messages to carry the quantile do not count.
    """
    if f"message_{column}" not in points.columns:
        return None
    drain_us = files.experiment("c10k").load.drain_s * 1e6
    share = _SHARES.get(column.split("_")[1], 0.5)
    answered = points.filter(pl.col("messages_due") >= stats.needed_samples(share))
    return answered[f"message_{column}"].cast(pl.Float64).fill_null(drain_us).mean()


def _latency_spread(points: pl.DataFrame) -> float | None:
    high, middle = (_latency(points, f"latency_{q}_us") for q in ("p95", "p50"))
    return high / middle if high is not None and middle else None


def _latency_deviation(points: pl.DataFrame) -> float | None:
    high, middle = (_latency(points, f"latency_{q}_us") for q in ("p95", "p50"))
    return high - middle if high is not None and middle is not None else None


PEAK = "peak_reply_rate_rps"
OF_SWEEP = {PEAK, "first_error_rate_rps"}
# What they are of is whether the run was steady, or how it ended: no reason to leave it out.
OF_THE_COURSE = {"died", "message_latency_growth"}

STATISTICS: dict[str, Callable[[pl.DataFrame], float | None]] = {
    "bytes_per_message": _bytes_per_message,
    "client_died": lambda p: float((~p["client_state"].str.starts_with("exit 0")).any()),
    "client_error_ratio": _client_error_ratio,
    "concurrent_connections": lambda p: _mean(p, "concurrent_connections"),
    "connections_held": lambda p: _mean(p, "outcome_completed"),
    "connection_timeouts": lambda p: _mean(p, "connection_timeouts"),
    "context_switches_per_reply": lambda p: _per_reply(p, "context_switches"),
    "cpu_us_per_reply": lambda p: _per_reply(p, "server_cpu_ns", 1e-3),
    "died": lambda p: float(p.select(views.DIED.any()).item()),
    "error_ratio": _error_ratio,
    "first_error_rate_rps": _first_error_rate,
    "handshake_time_mean_us": lambda p: _mean(p, "handshake_time_mean_us"),
    "interrupts_per_reply": lambda p: _per_reply(p, "interrupts"),
    "load_average": lambda p: p["load_average_max"].max(),
    "memory_overhead": _memory_overhead,
    "message_latency_deviation_us": _latency_deviation,
    "message_latency_growth": lambda p: _mean(p, "message_latency_growth"),
    "message_latency_mean_us": lambda p: _mean(p, "message_latency_mean_us"),
    "message_latency_p50_us": lambda p: _latency(p, "latency_p50_us"),
    "message_latency_p95_us": lambda p: _latency(p, "latency_p95_us"),
    "message_latency_spread": _latency_spread,
    "network_bytes_per_s": lambda p: _mean(p, "net_io_bytes_per_s"),
    PEAK: lambda p: p[REPLY].max(),
    "reply_rate_rps": lambda p: _mean(p, REPLY),
    "reply_ratio": lambda p: 1 - error if (error := _error_ratio(p)) is not None else None,
    "reply_rate_stddev_rps": lambda p: _mean(p, "reply_rate_stddev_rps"),
    "response_time_mean_us": lambda p: _mean(p, "response_time_avg_us"),
    "server_rss_bytes": lambda p: p["server_rss_bytes_max"].max(),
    "timeout_share": _timeout_share,
}
"""Statistics of one trial's points, by the names that claims.toml defines."""

_UNITS = {"_us": "µs", "_rps": "req/s", "_bytes": "B", "_bytes_per_s": "B/s"}
_TITLES = {
    "bytes_per_message": ("memory per message", "B"),
    "cpu_us_per_reply": ("CPU per reply", "µs"),
    "died": ("share of trials in which it died", ""),
    "first_error_rate_rps": ("lowest offered rate with over 1 % of errors", "req/s"),
    PEAK: ("highest reply rate", "req/s"),
    "server_rss_bytes": ("largest resident set", "B"),
}


def title(statistic: str) -> tuple[str, str]:
    """Return a statistic's short name in words and its unit, which is empty for pure numbers."""
    if statistic in _TITLES:
        return _TITLES[statistic]
    for ending, unit in _UNITS.items():
        if statistic.endswith(ending):
            return statistic.removesuffix(ending).replace("_", " "), unit
    return statistic.replace("_", " "), ""
