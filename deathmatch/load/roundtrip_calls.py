"""roundtrip in httperf's place: connections at a rate (`roundtrip --calls`), in httperf's columns.

Its load is that of an experiment with httperf. Values that httperf does not report, such as the
delay of a connection's opening, have their own columns; those that roundtrip lacks are null.
"""

from collections.abc import Mapping, Sequence

import polars as pl

from deathmatch.load import histogram, httperf, roundtrip
from deathmatch.load.generator import PROJECT, WHOLE, Fields, Part, Texts, Timed, shared
from deathmatch.load.httperf_report import COLUMNS, REPLY_INTERVAL_S, of_reply_rates

# Connections due within a step of this length are opened together at its end. At 5,000 a second a
# connection then takes 1.3 times the CPU time of a saturated loop, 2.5 times without steps
# (bench/clients.py).
GATHER_S = 0.0008


class RoundtripCalls(roundtrip.Roundtrip):
    """The load generator (generator.LoadGenerator); its rate counts requests."""

    columns = COLUMNS
    attempts = "connections"
    wrong_replies = httperf.GENERATOR.wrong_replies
    headline = httperf.GENERATOR.headline
    unknown_of_several = httperf.GENERATOR.unknown_of_several
    few = httperf.GENERATOR.few
    shares_host = True
    step_us = round(GATHER_S * 1e6)

    def command(
        self, host: str, port: int, load: Mapping, rate_rps: int, duration_s: float,
        part: Part = WHOLE, sources: Sequence[str] = (),
    ) -> list[str] | None:  # fmt: skip
        """Return the command line: the connection rate is the rate over the requests on each.

        Connections are dealt to the clients in turn.
        """
        calls = load["requests_per_connection"]
        own = part.among(max(1, round(rate_rps / calls * duration_s)))
        if own is None:
            return None
        varied = load.get("values") == "varied"
        return [
            "roundtrip", f"--host={host}", f"--port={port}",
            f"--request={roundtrip.escaped(request(load, host))}",
            *([f"--targets={PROJECT}/{httperf.VALUES}"] if varied else []),
            f"--calls={calls}", f"--rate={rate_rps / calls:g}", f"--duration={duration_s:g}",
            f"--timeout={load['timeout_s']:g}", f"--gather={GATHER_S:g}",
            *shared(own, sources, load, roundtrip.escaped),
        ]  # fmt: skip

    def idle_command(
        self, host: str, port: int, load: Mapping, connections: int,
        part: Part = WHOLE, sources: Sequence[str] = (),
    ) -> list[str] | None:  # fmt: skip
        """Return roundtrip's command line, with a request that keeps the connection open."""
        kept = {**load, "request": request({**load, "requests_per_connection": 2}, host)}
        return roundtrip.GENERATOR.idle_command(host, port, kept, connections, part, sources)

    def time_limit_s(self, load: Mapping, duration_s: float) -> float:
        """Return the limit: the first two exchanges, the test, its stragglers."""
        return duration_s + (load["requests_per_connection"] + 5) * load["timeout_s"] + 5

    def parse(self, report: Texts, duration_s: float) -> Fields:
        """Return the report's fields in httperf's columns (httperf.Httperf.parse).

        Times of connections are from bins 0.8 % wide; they run from the actual opening to the last
        reply. A reply's time ends with its last byte. Raises Truncated as roundtrip does.
        """
        whole = roundtrip.fields_of(report)
        times = _times(report, whole["test_duration_us"])
        fields = (
            dict.fromkeys(COLUMNS)
            | {name: whole[name] for name in (*COLUMNS, roundtrip.LEAST_LAG) if name in whole}
            | _connections(whole, times)
            | _replies(whole, times, report)
            | _traffic(whole)
        )
        fields["reply_rate_offered_window_rps"] = whole["replies_offered_window"] / duration_s
        if len(report) > 1:
            fields |= dict.fromkeys(self.unknown_of_several)
        return fields

    def histogram(self, report: Texts) -> pl.DataFrame:
        """Return the histograms: connection_time, as httperf's, and roundtrip's own."""
        return super().histogram(report).filter(pl.col("quantity") != "replies_at")

    def timed(self, report: Texts, fields: Fields) -> Timed:
        """Return the times of all due connections, from their intended opening."""
        times = self.histogram(report).filter(pl.col("quantity") == "latency")
        unbegun = sum(fields[error] or 0 for error in httperf.OWN_ERRORS)
        return Timed(times, fields["connections"] + unbegun)

    def progress(self, report: Texts, duration_s: float) -> list[float | None]:
        """Return the reply rates of the offered time, without its first REPLY_INTERVAL_S."""
        return list(_reply_rates(report)[1 : int(duration_s / REPLY_INTERVAL_S)])

    def actual_rate_rps(
        self, fields: Fields, during: pl.DataFrame, spec: Mapping, opened: int | None = None
    ) -> float | None:
        """Return the mean request rate that it offered, by the connections that it began."""
        if fields["connections"] is None:
            return None
        calls = spec["load"]["requests_per_connection"]
        return calls * fields["connections"] / spec["duration_s"]

    def own_delay(self, fields: Fields, limit_us: int, lag: str = "send_lag_p95_us") -> bool:
        """Return whether it had no CPU left, opened later, or ran out of descriptors or ports."""
        starved = sum(fields[error] or 0 for error in httperf.OWN_ERRORS)
        return starved > 0 or super().own_delay(fields, limit_us, lag)


GENERATOR = RoundtripCalls()


def request(load: Mapping, host: str) -> str:
    """Return the request that httperf sends for this load."""
    target = "{target}" if load.get("values") == "varied" else load["uri"]
    close = "Connection: close\r\n" if load["requests_per_connection"] == 1 else ""
    return f"GET {target} HTTP/1.1\r\nUser-Agent: roundtrip\r\nHost: {host}\r\n{close}\r\n"


def _times(report: Texts, tested_us: int) -> dict[str, pl.DataFrame]:
    """Return the bins of each quantity, with centres within the test's time."""
    bins = GENERATOR.histogram(report).with_columns(pl.col("time_us").clip(upper_bound=tested_us))
    return {
        quantity: bins.filter(pl.col("quantity") == quantity)
        for quantity in ("connection_time", "connect_time", "service_time")
    }


def _mean_us(times: pl.DataFrame) -> int | None:
    return _rounded(histogram.statistics(times)["mean"])


def _rounded(us: float | None) -> int | None:
    return None if us is None else round(us)


def _connections(whole: Fields, times: dict[str, pl.DataFrame]) -> Fields:
    bins = times["connection_time"]
    found = histogram.statistics(bins)
    rate = _per_s(whole, whole["connects"])
    return {
        "connections": whole["connects"],
        "concurrent_connections": whole["most_under_way"],
        "connection_rate_rps": rate,
        "connection_period_us": round(1e6 / rate) if rate else None,
        "connection_time_min_us": bins["time_us"].min(),
        "connection_time_avg_us": _rounded(found["mean"]),
        "connection_time_max_us": found["max"],
        "connection_time_median_us": found["p50"],
        "connection_time_stddev_us": _rounded(found["stddev"]),
        "connect_time_avg_us": _mean_us(times["connect_time"]),
        "connection_length_replies": (
            whole["replies"] / whole["connects"] if whole["connects"] else None
        ),
    }


def _replies(whole: Fields, times: dict[str, pl.DataFrame], report: Texts) -> Fields:
    rates = _reply_rates(report)[: whole["test_duration_us"] // round(1e6 * REPLY_INTERVAL_S)]
    rate, begins = _per_s(whole, whole["requests"]), whole["reply_begins"]
    head = whole["reply_head_bytes"] or None
    # All that count as replies have the first one's status.
    by_status = (
        {f"replies_{digit}xx": 0 for digit in range(1, 6)}
        | {f"replies_{begins[9]}xx": whole["replies"]}
        if begins.startswith("HTTP/1")
        else {}
    )
    return by_status | {
        "request_rate_rps": rate,
        "request_period_us": round(1e6 / rate) if rate else None,
        "request_size_bytes": float(whole["request_bytes"]),
        **of_reply_rates(rates),
        "response_time_avg_us": _mean_us(times["service_time"]),
        "reply_header_bytes": None if head is None else float(head),
        "reply_content_bytes": None if head is None else float(whole["reply_bytes"] - head),
        "reply_total_bytes": float(whole["reply_bytes"]),
    }


def _traffic(whole: Fields) -> Fields:
    bytes_per_s = _per_s(
        whole, whole["received_bytes"] + whole["requests"] * whole["request_bytes"]
    )
    return {
        "net_io_bytes_per_s": bytes_per_s,
        "net_io_megabit_per_s": None if bytes_per_s is None else 8e-6 * bytes_per_s,
        "errors_socket_timeout": 0,
        "errors_file_table_full": 0,
    }


def _per_s(whole: Fields, count: int) -> float | None:
    tested_us = whole["test_duration_us"]
    return count / tested_us * 1e6 if tested_us else None


def _reply_rates(report: Texts) -> list[float]:
    """Return the replies per second in each REPLY_INTERVAL_S, up to the last one with replies."""
    counts: dict[int, int] = {}
    for text in report:
        for quantity, lower, _, count in roundtrip.bins(text):
            if quantity == "replies_at":
                at = round(lower / 1e6 / REPLY_INTERVAL_S)
                counts[at] = counts.get(at, 0) + count
    return [counts.get(at, 0) / REPLY_INTERVAL_S for at in range(max(counts, default=-1) + 1)]
