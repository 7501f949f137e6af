"""wsload: the command line of clients/wsload, and the results of a run (see its README.md).

An experiment's `load` for it has `message_bytes`, `interval_s`, `opening`, `timeout_s` and
`drain_s`. It may have `messages`, `step_s` and `hold_s`, and `text` for a server that does not echo
binary messages. Its rate counts messages, so that the number of connections is that of the messages
due in one interval.

`wsload_summary` reads its summary. In place of the records of every message, a trial keeps the
histograms of `wsload_records`, in Parquet files next to the log.
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from deathmatch.load import histogram, wsload_records
from deathmatch.load.generator import WHOLE, Fields, LoadGenerator, Part, Timed, shared
from deathmatch.load.wsload_summary import COLUMNS, RSS, fields_of

# The time-out of gen_tcp:connect/4 in the post's client (src/websocket_client.erl of wsdemo).
POST_CONNECT_TIMEOUT_US = 2_000_000
# It slept for 1 to 2 ms between two connections (src/wsdemo_stats.erl).
POST_OPEN_RATE_CPS = 1000

# The suffix of the file next to a log with the messages due and echoed of connections.
SHARES = ".connections.parquet"

# Level 19 makes the files 3 % smaller and takes 20 times as long between two trials.
ZSTD_LEVEL = 3

# The share of the most messages due in a second above which every connection is open.
ALL_SENT = 0.99


@dataclass(frozen=True)
class Report:
    """The results of a run: each client's summary, as text, and the histograms of all.

    `times` and `shares` are those of `wsload_records.histograms`, in its order, and of
    `wsload_records.shares`.
    """

    texts: tuple[str, ...]
    times: pl.DataFrame
    shares: pl.DataFrame = field(
        default_factory=lambda: pl.DataFrame(schema=wsload_records.SHARES_SCHEMA)
    )


class Wsload(LoadGenerator[Report]):
    """The load generator (generator.LoadGenerator); its rate counts messages."""

    columns = COLUMNS
    has_seconds = True
    attempts = "connections_opened"
    wrong_besides = ("messages_mismatched",)
    rejected = ("outcome_handshake_rejected", "outcome_protocol_error")
    headline = "latency"

    def command(
        self, host: str, port: int, load: Mapping, rate_rps: int, duration_s: float,
        part: Part = WHOLE, sources: Sequence[str] = (),
    ) -> list[str] | None:  # fmt: skip
        """Return the command line for one offered rate in messages per second.

        It writes its records into `wsload-<rate>` of its working directory. One source address is
        enough for 64,512 connections, with the testbed's range of ports. At most one client takes
        part for each connection, or for each one that may be opening at a time (`opening`). If
        `opening` is 0, connections are begun at POST_OPEN_RATE_CPS, however many are opening.
        """
        connections = max(1, round(rate_rps * load["interval_s"]))
        opening = load["opening"]
        own = part.among(min(connections, opening) if opening else connections)
        if own is None:
            return None

        def time(value_s: float) -> str:
            return f"{round(value_s * 1e6)}us"

        return [
            "wsload", f"ws://{host}:{port}/", "--quiet",
            f"--connections={connections}",
            f"--opening={opening}" if opening else f"--open-rate={POST_OPEN_RATE_CPS}",
            f"--size={load['message_bytes']}",
            f"--interval={time(load['interval_s'])}", f"--duration={time(duration_s)}",
            f"--handshake-timeout={time(load['timeout_s'])}", f"--drain={time(load['drain_s'])}",
            *([f"--messages={load['messages']}"] if "messages" in load else []),
            *(
                f"--{key}={time(load[f'{key}_s'])}"
                for key in ("step", "hold")
                if f"{key}_s" in load
            ),
            f"--output=wsload-{rate_rps}", *(["--text"] if load.get("text") else []),
            *shared(own, sources),
        ]  # fmt: skip

    def few(self, load: Mapping) -> tuple[int, float]:
        """Return a rate and a duration in which ten connections send a message each."""
        return max(1, round(10 / load["interval_s"])), max(0.5, load["interval_s"])

    def time_limit_s(self, load: Mapping, duration_s: float) -> float:
        """Return the limit, some time after the drain, when the run ends by itself."""
        return duration_s + load["drain_s"] + load["interval_s"] + 15

    def compact(self, log: Path) -> None:
        """Write a run's histograms next to its log, and remove its records."""
        records = log.with_suffix("")
        partial = log.with_suffix(".partial")
        if not records.exists():
            return
        stored = wsload_records.steps(wsload_records.histograms(records))
        stored.write_parquet(partial, compression="zstd", compression_level=ZSTD_LEVEL)
        partial.rename(log.with_suffix(".parquet"))
        wsload_records.shares(records).write_parquet(
            partial, compression="zstd", compression_level=ZSTD_LEVEL
        )
        partial.rename(log.with_suffix(SHARES))
        shutil.rmtree(records)

    def read(self, log: Path) -> Report:
        """Return the results of a run, from its log and the files next to it."""
        text = log.read_text(errors="replace") if log.exists() else ""
        file = log.with_suffix(".parquet")
        if not file.exists():
            return Report((text,), pl.DataFrame(schema=wsload_records.TIMES_SCHEMA))
        times = wsload_records.of_steps(pl.read_parquet(file))
        return Report((text,), times, pl.read_parquet(log.with_suffix(SHARES)))

    def merge(self, reports: Sequence[Report]) -> Report:
        """Return the summaries and the histograms of all.

        The 99th percentile of the client's lag and the clients' peak of memory are upper bounds.
        """
        times = histogram.merge(report.times for report in reports)
        texts = tuple(text for report in reports for text in report.texts)
        shares = histogram.merge(report.shares for report in reports)
        return Report(texts, times.cast(wsload_records.TIMES_SCHEMA), shares)

    def parse(self, report: Report, duration_s: float) -> Fields:
        """Return the summary's counts and the statistics of times, named and typed as in COLUMNS.

        Quantiles are over all connections opened and all messages due; they are None if that share
        never ended. Mean, standard deviation and maximum are of those that ended.
        `connection_timeouts` counts as the post's client did: TCP connections that took more than
        2 s, rounded to 10 ms by DIGITS. `message_latency_growth` is the median latency of the run's
        last fifth (a minute of the post's five) over that of its first. `connections_opening_max`
        is the most connections that were opening at a time, or the sum of several clients' peaks.
        The columns of `sampled` and CHURN are None here. Raises Truncated if a summary is
        truncated, or is not that of the records next to it.
        """
        fields = fields_of(report.texts, report.times)
        slow = report.times.filter(
            (pl.col("quantity") == "connection_time")
            & (pl.col("time_us") > POST_CONNECT_TIMEOUT_US)
        )
        fields["connections_starved"] = wsload_records.starved(report.shares)
        fields["connection_timeouts"] = slow["count"].sum() + fields["outcome_connect_timeout"]
        for quantity, begin in wsload_records.QUANTITIES.items():
            found = histogram.statistics(report.times.filter(pl.col("quantity") == quantity))
            fields |= {f"{begin}_{name}_us": value for name, value in found.items()}
        fields["message_latency_growth"] = _growth(report.times, duration_s)
        fields["reply_rate_offered_window_rps"] = fields["replies"] / duration_s
        return {name: fields.get(name) for name in COLUMNS}

    def histogram(self, report: Report) -> pl.DataFrame:
        """Return the histograms over the whole run, without times that never ended."""
        return (
            report.times.drop_nulls("time_us")
            .group_by("quantity", "time_us")
            .agg(pl.col("count").sum().cast(pl.Int64))
            .sort("quantity", "time_us")
            .cast(histogram.SCHEMA)
        )

    def timed(self, report: Report, fields: Fields) -> Timed:
        """Return the times from the intended send of a message to its echo."""
        echoed = report.times.filter(pl.col("quantity") == "latency").drop_nulls("time_us")
        return Timed(echoed, fields["messages_due"])

    def seconds(self, report: Report) -> pl.DataFrame:
        """Return handshake and latency for each second of intended time (histogram.SECONDS).

        `lost` are those of `count` that never ended; quantiles are defined as in `parse`.
        """
        chosen = report.times.filter(pl.col("quantity").is_in(["handshake_time", "latency"]))
        count, ended = pl.col("count").cast(pl.Int64), pl.col("time_us").is_not_null()
        found = chosen.group_by("quantity", since_start_s="second", maintain_order=True).agg(
            count.sum(), lost=count.filter(~ended).sum(), max_us=pl.col("time_us").max(),
            **{f"p{q}_us": histogram.quantile(q / 100) for q in (50, 95, 99)},
        )  # fmt: skip
        return (
            found.cast(histogram.SECONDS)
            .select(list(histogram.SECONDS))
            .sort("quantity", "since_start_s")
        )

    def progress(self, report: Report, duration_s: float) -> list[float | None]:
        """Return the median latency of each whole second in which every connection sent.

        While connections are opened, fewer messages are due each second. The first full second is
        left out, because the last connections opened in it, or just before.
        """
        each = self.seconds(report).filter(
            (pl.col("quantity") == "latency") & (pl.col("since_start_s") < int(duration_s))
        )
        most = each["count"].max()
        # Messages near a second's end may be due in either second.
        return each.filter(pl.col("count") >= ALL_SENT * pl.lit(most))["p50_us"].to_list()[1:]

    def sampled(self, samples: pl.DataFrame, during: pl.DataFrame) -> Fields:
        """Return the server's memory for each connection held, from a trial's samples.

        `server_rss_held_bytes` is the median while the most connections were established,
        `server_rss_before_bytes` that of the first sample: before the warm-up, or at the rate's
        start, if another one came before it. Shared pages count in each process.
        """
        if not len(during):
            return dict.fromkeys(RSS)
        earlier = samples.filter(pl.col("time_us") < during["time_us"][0])
        first = earlier if len(earlier) and not earlier["offered_rate_rps"].count() else during
        most = during["server_established"].max()
        held = during.filter(pl.col("server_established") == most)["server_rss_bytes"].median()
        before = first["server_rss_bytes"][0]
        return {
            "server_rss_before_bytes": before,
            "server_rss_held_bytes": round(held),
            "server_rss_per_connection_bytes": (held - before) / most if most else None,
            "server_established_max": most,
        }

    def actual_rate_rps(
        self, fields: Fields, during: pl.DataFrame, spec: Mapping, opened: int | None = None
    ) -> float | None:
        """Return the mean rate of messages that it sent; connections send after their upgrade."""
        sent = fields["messages_sent"]
        return None if sent is None else sent / spec["duration_s"]

    def limited(
        self, fields: Fields, offered_rate_rps: float, actual_rate_rps: float | None
    ) -> bool:
        """Return the client's own verdict, for the reasons in `client_limited_by`."""
        return fields["client_limited_by"] != ""


GENERATOR = Wsload()


def _growth(times: pl.DataFrame, duration_s: float) -> float | None:
    latency = times.filter(pl.col("quantity") == "latency")
    part_s = max(1, duration_s / 5)
    first = latency.filter(pl.col("second") < part_s)
    last = latency.filter(pl.col("second") >= duration_s - part_s)
    medians = [histogram.quantile_us(part, 0.5) for part in (first, last)]
    return medians[1] / medians[0] if all(medians) else None
