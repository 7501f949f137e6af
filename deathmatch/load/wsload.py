"""wsload: the command line, summary and records of clients/wsload (see its README.md).

An experiment's `load` for it has `message_bytes`, `interval_s`, `opening`, `timeout_s` and
`drain_s`, and may have `messages`, and `text` for a server that does not send binary messages back.
Its rate counts messages, so that it has as many connections as messages are due in one interval.

Of its records, which hold every message, a trial keeps histograms of whole microseconds for each
second of intended time, in a Parquet file beside the log. They lose only which connection a
message was on: every quantile of every second is exact.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from deathmatch.errors import Truncated
from deathmatch.load import histogram, sound
from deathmatch.load.generator import WHOLE, Fields, Part, Timed, shared

# The post's client gave gen_tcp:connect/4 so long (src/websocket_client.erl of wsdemo).
POST_CONNECT_TIMEOUT_US = 2_000_000

# Quantity of the histograms -> how its columns begin.
_QUANTITIES = {
    "handshake_time": "handshake_time",
    "latency": "message_latency",
    "service_time": "service_time",
    "connection_time": "connection_time",
}
# A null time is that of a message or connection that never got so far.
TIMES_SCHEMA = {
    "quantity": pl.Enum(list(_QUANTITIES)), "second": pl.Int32, "time_us": pl.Int64,
    "count": pl.Int32,
}  # fmt: skip
# Up to here an array with a place for every microsecond is cheaper than sorting: 128 MB.
_DENSE_US = 1 << 24
_QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}
_STATISTICS = {"mean": pl.Float64, "stddev": pl.Float64} | dict.fromkeys(
    [*_QUANTILES, "max"], pl.Int64
)

# How the file ends, beside a log, that tells how evenly connections were served.
SHARES = ".connections.parquet"
SHARES_SCHEMA = {"due": pl.Int32, "echoed": pl.Int32, "count": pl.Int32}
# A connection on which so many messages were due and none was echoed got nothing.
STARVED_DUE = 3

# Of the messages that are due in a second if every connection stands.
ALL_SENT = 0.99

OUTCOMES = ["completed", "connect_timeout", "handshake_timeout", "refused", "reset", "unreachable",
            "handshake_rejected", "closed_by_server", "protocol_error", "out_of_descriptors",
            "out_of_ports", "other_error", "unfinished", "not_opened"]  # fmt: skip

# Column -> where it is in the summary.
_SUMMARY = {
    "connections": ("connections", "intended_count"),
    "connections_opened": ("connections", "opened_count"),
    "connections_upgraded": ("connections", "upgraded_count"),
    "messages_due": ("messages", "intended_count"),
    "messages_sent": ("messages", "sent_count"),
    "replies": ("messages", "echoed_count"),
    "messages_lost": ("messages", "lost_count"),
    "messages_unsent": ("messages", "unsent_count"),
    "messages_mismatched": ("messages", "mismatched_count"),
    "client_lag_p99_us": ("client", "lag", "p99_us"),
    "client_lag_max_us": ("client", "lag", "max_us"),
    "client_cpu_us": ("client", "cpu_us"),
    "client_rss_peak_bytes": ("client", "resident_peak_bytes"),
    "client_loop_busy_share": ("client", "loop_busy_share"),
}
_RSS = {
    "server_rss_before_bytes": pl.Int64,
    "server_rss_held_bytes": pl.Int64,
    "server_rss_per_connection_bytes": pl.Float64,
    "server_established_max": pl.Int64,
}

# How connections opened: over the time from the first one's start to the last one's upgrade.
OPENING = {"opening_rate_cps": pl.Float64, "connections_opening_max": pl.Int64}
# Of the connections that came and went before a rate: what the trial's record says (measure.churn).
CHURN = {
    "warm_up_rounds": pl.Int64,
    "warm_up_first_cps": pl.Float64,
    "warm_up_last_cps": pl.Float64,
    "warm_up_steady": pl.Boolean,
}

COLUMNS = (
    {
        name: pl.Float64 if name.endswith("_share") else pl.Int64
        for name in [*_SUMMARY, *(f"outcome_{outcome}" for outcome in OUTCOMES)]
    }
    | {"connections_starved": pl.Int64, "connection_timeouts": pl.Int64}
    | {"client_limited_by": pl.String}
    | {
        f"{begin}_{statistic}_us": kind
        for begin in _QUANTITIES.values()
        for statistic, kind in _STATISTICS.items()
    }
    | {"message_latency_growth": pl.Float64, "reply_rate_offered_window_rps": pl.Float64}
    | _RSS
    | OPENING
    | CHURN
)


@dataclass(frozen=True)
class Report:
    """What a run left: each client's summary, as text, and the histograms of all, or none.

    `times` is as `histograms` returns it; `seconds` relies on its order. `shares` is as `shares`
    returns it, or None if a client did not keep it.
    """

    texts: tuple[str, ...]
    times: pl.DataFrame
    shares: pl.DataFrame | None = None


# How several clients' summaries become one, in the columns that do not add up: a lag's quantile is
# known of each client only, and that of all is no more than the largest.
_MOST = ("client_lag_p99_us", "client_lag_max_us", "client_loop_busy_share")


class Wsload:
    """The load generator (generator.LoadGenerator); its rate counts messages.

    It has as many connections as messages are due in one interval.
    """

    columns = COLUMNS
    has_seconds = True
    attempts = "connections_opened"
    unknown_of_several: Mapping[str, str] = {}
    headline = "latency"

    def command(
        self, host: str, port: int, load: Mapping, rate_rps: int, duration_s: float,
        part: Part = WHOLE, sources: Sequence[str] = (),
    ) -> list[str] | None:  # fmt: skip
        """Return the command line for one offered rate in messages per second.

        It writes its records into `wsload-<rate>` of its working directory. One source address is
        enough for 64,512 connections, with the testbed's range of ports. No more clients take part
        than there are connections, or than may be in the making at a time (`opening`).
        """
        connections = max(1, round(rate_rps * load["interval_s"]))
        own = part.among(min(connections, load["opening"]))
        if own is None:
            return None

        def time(value_s: float) -> str:
            return f"{round(value_s * 1e6)}us"

        return [
            "wsload", f"ws://{host}:{port}/", "--quiet",
            f"--connections={connections}",
            f"--opening={load['opening']}", f"--size={load['message_bytes']}",
            f"--interval={time(load['interval_s'])}", f"--duration={time(duration_s)}",
            f"--handshake-timeout={time(load['timeout_s'])}", f"--drain={time(load['drain_s'])}",
            *([f"--messages={load['messages']}"] if "messages" in load else []),
            f"--output=wsload-{rate_rps}", *(["--text"] if load.get("text") else []),
            *shared(own, sources),
        ]  # fmt: skip

    def time_limit_s(self, load: Mapping, duration_s: float) -> float:
        """Return when a run has wedged: it ends by itself after the drain."""
        return duration_s + load["drain_s"] + load["interval_s"] + 15

    def compact(self, log: Path, keep_events: bool) -> None:
        """Write the histograms of a run beside its log; remove its records unless they are kept."""
        records = log.with_suffix("")
        partial = log.with_suffix(".partial")
        if not records.exists():
            return
        # In steps from one time to the next, the file is a quarter smaller.
        times = histograms(records)
        earlier_us = times["time_us"].shift().scatter(_series(times), 0)
        steps = times.with_columns(step_us=times["time_us"] - earlier_us)
        stored = steps.select("quantity", "second", "step_us", "count")
        stored.write_parquet(partial, compression="zstd", compression_level=19)
        partial.rename(log.with_suffix(".parquet"))
        shares(records).write_parquet(partial, compression="zstd", compression_level=19)
        partial.rename(log.with_suffix(SHARES))
        if not keep_events:
            shutil.rmtree(records)

    def read(self, log: Path) -> Report:
        """Return what a run left beside its log."""
        text = log.read_text(errors="replace") if log.exists() else ""
        file = log.with_suffix(".parquet")
        if not file.exists():
            return Report((text,), pl.DataFrame(schema=TIMES_SCHEMA))
        stored = pl.read_parquet(file).cast({"quantity": TIMES_SCHEMA["quantity"]})
        step_us = stored["step_us"].fill_null(0).to_numpy()
        # Sums over the whole file, less what they had come to before each series.
        summed_us, first = step_us.cumsum(), _series(stored)
        before_us = summed_us[first] - step_us[first]
        summed_us -= np.repeat(before_us, np.diff(first, append=len(stored)))
        time_us = pl.when(pl.col("step_us").is_not_null()).then(pl.Series(summed_us))
        kept = log.with_suffix(SHARES)
        return Report(
            (text,),
            stored.with_columns(time_us=time_us).select(list(TIMES_SCHEMA)),
            pl.read_parquet(kept) if kept.exists() else None,
        )

    def merge(self, reports: Sequence[Report]) -> Report:
        """Return the summaries and the histograms of all.

        Of the whole, the 99th percentile of the client's lag is an upper bound, and so is the
        most memory that the clients used at a time.
        """
        times = histogram.merge(report.times for report in reports)
        texts = tuple(text for report in reports for text in report.texts)
        each = [report.shares for report in reports]
        known = None if any(one is None for one in each) else histogram.merge(each)
        return Report(texts, times.cast(TIMES_SCHEMA), known)

    def parse(self, report: Report, duration_s: float) -> Fields:
        """Return the summary's counts and the exact statistics, named and typed as in COLUMNS.

        Quantiles are over all connections opened and all messages due: one that lies among those
        that never ended is None. Mean, standard deviation and maximum are of those that did.
        `connection_timeouts` counts as the post's client did: TCP connections that took more than
        2 s. `message_latency_growth` is the median latency of the run's last fifth (a minute of the
        post's five) over that of its first. `connections_opening_max` is how many connections were
        in the making at a time at most: of several clients the sum, which they need not have
        reached together. What is taken of samples is None here (`sampled`), and so is CHURN.
        Raises Truncated if a summary is not whole, or not that of the records beside it.
        """
        parts = [_summary(text) for text in report.texts]
        _of_records(report.times, parts)
        fields: Fields = _opening([_json(text)["connections"] for text in report.texts])
        for name in parts[0]:
            known = [part[name] for part in parts if part[name] is not None]
            fields[name] = (max(known) if name in _MOST else sum(known)) if known else None
        reasons = {reason: None for text in report.texts for reason in _limited_by(text)}
        fields["client_limited_by"] = "; ".join(reasons)
        slow = report.times.filter(
            (pl.col("quantity") == "connection_time")
            & (pl.col("time_us") > POST_CONNECT_TIMEOUT_US)
        )
        fields["connections_starved"] = starved(report.shares)
        fields["connection_timeouts"] = slow["count"].sum() + fields["outcome_connect_timeout"]
        for quantity, begin in _QUANTITIES.items():
            found = statistics(report.times.filter(pl.col("quantity") == quantity))
            fields |= {f"{begin}_{name}_us": value for name, value in found.items()}
        fields["message_latency_growth"] = _growth(report.times, duration_s)
        fields["reply_rate_offered_window_rps"] = fields["replies"] / duration_s
        return {name: fields.get(name) for name in COLUMNS}

    def histogram(self, report: Report) -> pl.DataFrame:
        """Return the histograms over the whole run without what never ended.

        `time_us` is rounded to three significant digits; the statistics in `points` are not.
        """
        magnitude = 10 ** (pl.col("time_us").clip(1).log10().floor().clip(2) - 2)
        rounded = ((pl.col("time_us") / magnitude).round() * magnitude).cast(pl.Int64)
        return (
            report.times.drop_nulls("time_us")
            .group_by("quantity", time_us=rounded)
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

        `lost` are those of `count` that never ended; quantiles as in `parse`.
        """
        chosen = report.times.filter(pl.col("quantity").is_in(["handshake_time", "latency"]))
        first = _series(chosen)
        last = np.append(first[1:], len(chosen))[: len(first)] - 1
        each = chosen["count"].cast(pl.Int64).to_numpy()
        reached = each.cumsum()
        before = reached[first] - each[first]
        counts = reached[last] - before
        at = {
            name: reached.searchsorted(before + q * counts)
            for name, q in _QUANTILES.items()
            if name != "p999"
        }
        lost = chosen["time_us"].is_null().to_numpy()[last]
        at["max"] = np.maximum(last - lost, first)
        return (
            chosen[first]
            .select(
                "quantity", since_start_s="second", count=pl.Series(counts),
                lost=pl.Series(np.where(lost, each[last], 0)),
                **{f"{name}_us": chosen["time_us"][place] for name, place in at.items()},
            )
            .cast(histogram.SECONDS)
            .select(list(histogram.SECONDS))
            .sort("quantity", "since_start_s")
        )  # fmt: skip

    def progress(self, report: Report, duration_s: float) -> list[float | None]:
        """Return the median latency of each whole second in which every connection sent.

        While connections are opened there are fewer messages due each second. The first second in
        which all are is left out: the last connections were still opened in it, or just before.
        """
        each = self.seconds(report).filter(
            (pl.col("quantity") == "latency") & (pl.col("since_start_s") < int(duration_s))
        )
        most = each["count"].max()
        # Phases of messages lie on either side of a second's end.
        return each.filter(pl.col("count") >= ALL_SENT * pl.lit(most))["p50_us"].to_list()[1:]

    def sampled(self, samples: pl.DataFrame, during: pl.DataFrame) -> Fields:
        """Return the server's memory for each connection held, from a trial's samples.

        `server_rss_held_bytes` is the median while most connections were established,
        `server_rss_before_bytes` that of the first sample: before the warm-up, or, where another
        rate was offered before this one, at this one's start. Shared pages count in each process.
        """
        if not len(during):
            return dict.fromkeys(_RSS)
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
        """Return the mean rate of messages that it sent; connections not upgraded yet send none."""
        sent = fields["messages_sent"]
        return None if sent is None else sent / spec["duration_s"]

    def limited(
        self, fields: Fields, offered_rate_rps: float, actual_rate_rps: float | None
    ) -> bool:
        """Return the client's own verdict, for the reasons in `client_limited_by`."""
        return fields["client_limited_by"] != ""


GENERATOR = Wsload()


def _summary(text: str) -> Fields:
    """Return the counts of one client's summary."""
    summary = _json(text)
    try:
        fields = {name: _at(summary, path) for name, path in _SUMMARY.items()}
        outcomes = summary["connections"]["outcomes_count"]
        fields |= {f"outcome_{name}": outcomes.get(name, 0) for name in OUTCOMES}
    except (KeyError, TypeError, AttributeError) as error:
        raise Truncated(f"the summary is not whole: {error}") from None
    sound.checked(fields, COLUMNS)
    # A quantile of nothing is null there; a count never is.
    for name in fields:
        if fields[name] is None and not name.startswith("client_lag"):
            raise Truncated(f"the summary is not whole: {name} is null")
    if unknown := sorted(set(outcomes) - set(OUTCOMES)):
        raise Truncated(f"no outcome of a connection is called {unknown[0]!r}")
    of_outcomes = sum(fields[f"outcome_{name}"] for name in OUTCOMES)
    sound.equal("connections by outcome", of_outcomes, "all connections", fields["connections"])
    ended = fields["messages_sent"] + fields["messages_unsent"]
    sound.equal("messages sent and unsent", ended, "those due", fields["messages_due"])
    answered = fields["replies"] + fields["messages_lost"]
    sound.equal("messages echoed and lost", answered, "those sent", fields["messages_sent"])
    return fields


def _of_records(times: pl.DataFrame, parts: list[Fields]) -> None:
    """Raise Truncated if the histograms hold not as much as the summaries tell."""
    if times.is_empty():
        return
    for quantity, name in (
        ("latency", "messages_due"), ("service_time", "messages_sent"),
        ("handshake_time", "connections_opened"),
    ):  # fmt: skip
        held = times.filter(pl.col("quantity") == quantity)["count"].cast(pl.Int64).sum()
        told = sum(part[name] for part in parts)
        sound.equal(f"the records of {quantity}", held, "the summary's", told)


def _opening(parts: list[dict]) -> Fields:
    """Return OPENING's fields of the clients' counts; None where one does not tell."""
    if any("first_started_us" not in part for part in parts):
        return dict.fromkeys(OPENING)
    for part in parts:
        for name in ("first_started_us", "last_upgraded_us", "most_opening_count"):
            if not isinstance(part.get(name, ""), int | None):
                raise Truncated(f"the summary is not whole: {name} is no number")
    began = [part["first_started_us"] for part in parts if part["first_started_us"] is not None]
    ended = [part["last_upgraded_us"] for part in parts if part["last_upgraded_us"] is not None]
    took_us = max(ended) - min(began) if ended else 0
    upgraded = sum(part["upgraded_count"] for part in parts)
    return {
        "opening_rate_cps": upgraded / took_us * 1e6 if took_us else 0.0,
        "connections_opening_max": sum(part["most_opening_count"] for part in parts),
    }


def _limited_by(text: str) -> list[str]:
    client = _json(text).get("client")
    reasons = client.get("limited_by") if isinstance(client, dict) else None
    if not isinstance(reasons, list) or not all(isinstance(reason, str) for reason in reasons):
        raise Truncated("the summary is not whole: it does not tell what limited the client")
    return reasons


def _json(text: str) -> dict:
    try:
        # What it has to say to a person comes around the summary.
        return json.JSONDecoder().raw_decode(text[text.index("{") :])[0]
    except (ValueError, RecursionError) as error:
        raise Truncated(f"the summary is not whole: {error}") from None


def histograms(records: Path) -> pl.DataFrame:
    """Return how often each quantity took how long in each second of intended time.

    Columns as in TIMES_SCHEMA; each quantity in one piece, sorted by second and time, what never
    ended last. `latency` and `service_time` run from a message's
    intended and actual send to its echo, and have a null for each that has none; `handshake_time`
    and `connection_time` from a connection's intended opening to its upgrade and to the TCP
    connection, likewise.
    """
    frames = []
    messages = pl.scan_parquet(records / "messages" / "*.parquet")
    if any((records / "messages").glob("*.parquet")):
        frames += [
            _counted(messages, "latency", "intended_us", "received_us"),
            _counted(
                messages.filter(pl.col("sent_us").is_not_null()),
                "service_time", "sent_us", "received_us",
            ),
        ]  # fmt: skip
    if (records / "connections.parquet").exists():
        connections = pl.scan_parquet(records / "connections.parquet").filter(
            pl.col("started_us").is_not_null()
        )
        frames += [
            _counted(connections, "handshake_time", "intended_us", "upgraded_us"),
            _counted(connections, "connection_time", "intended_us", "connected_us"),
        ]
    return pl.concat([pl.DataFrame(schema=TIMES_SCHEMA), *pl.collect_all(frames)])


def shares(records: Path) -> pl.DataFrame:
    """Return on how many connections how many messages were due and echoed: SHARES_SCHEMA, sorted.

    Of the connections that stood to the end: another one's outcome says why it got no more.
    """
    if not (records / "connections.parquet").exists():
        return pl.DataFrame(schema=SHARES_SCHEMA)
    stood = pl.scan_parquet(records / "connections.parquet").filter(
        pl.col("upgraded_us").is_not_null() & pl.col("outcome").is_in(["completed", "unfinished"])
    )
    each = stood.select("connection", due=pl.lit(0), echoed=pl.lit(0))
    if any((records / "messages").glob("*.parquet")):
        counted = (
            pl.scan_parquet(records / "messages" / "*.parquet")
            .group_by("connection")
            .agg(due=pl.len(), echoed=pl.col("received_us").is_not_null().sum())
        )
        joined = stood.select("connection").join(counted, on="connection", how="left")
        each = joined.with_columns(pl.col("due", "echoed").fill_null(0))
    summed = each.group_by("due", "echoed").agg(count=pl.len()).sort("due", "echoed")
    return summed.collect().cast(SHARES_SCHEMA)


def starved(found: pl.DataFrame | None) -> int | None:
    """Return how many connections got nothing, of `shares`; None where that is not known."""
    if found is None:
        return None
    nothing = (pl.col("due") >= STARVED_DUE) & (pl.col("echoed") == 0)
    return int(found.filter(nothing)["count"].sum())


def _counted(events: pl.LazyFrame, quantity: str, begin: str, end: str) -> pl.LazyFrame:
    second = (pl.col("intended_us") // 1_000_000).cast(pl.Int32)
    return (
        events.group_by(second=second, time_us=pl.col(end) - pl.col(begin))
        .agg(count=pl.len().cast(pl.Int32))
        .sort("second", "time_us", nulls_last=True)
        .select(
            pl.lit(quantity, TIMES_SCHEMA["quantity"]).alias("quantity"),
            "second",
            "time_us",
            "count",
        )
    )


def _series(frame: pl.DataFrame) -> np.ndarray:
    """Return at which rows of the histograms another second or quantity begins."""
    keys = [frame["second"].to_numpy(), frame["quantity"].to_physical().to_numpy()]
    changes = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    return np.append(np.zeros(min(1, len(frame)), int), np.flatnonzero(changes) + 1)


def _at(summary: dict, path: tuple[str, ...]) -> int | float | None:
    value = summary
    for key in path:
        value = value[key]
    return value


def statistics(counted: pl.DataFrame) -> dict[str, float | int | None]:
    """Return mean, stddev, p50, p95, p99, p999 and max, in us, of time_us with their count.

    Quantiles are those of `histogram.quantiles_us`; stddev is that of the population.
    """
    known = counted.drop_nulls("time_us")
    if not len(known):
        return dict.fromkeys(_STATISTICS)
    times, counts = _merged(known)
    mean = np.average(times, weights=counts)
    variance = np.average((times - mean) ** 2, weights=counts)
    found: dict[str, float | int | None] = {"mean": float(mean), "stddev": float(variance**0.5)}
    distinct = pl.DataFrame({"time_us": times, "count": counts})
    quantiles_us = histogram.quantiles_us(
        distinct, list(_QUANTILES.values()), counted["count"].sum()
    )
    return found | dict(zip(_QUANTILES, quantiles_us)) | {"max": int(times[-1])}


def _merged(known: pl.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct times in order, and how many were counted of each."""
    if known["time_us"].max() < _DENSE_US:
        every = np.bincount(known["time_us"].to_numpy(), weights=known["count"].to_numpy())
        times = np.flatnonzero(every)
        return times, every[times]
    merged = known.group_by("time_us").agg(pl.col("count").cast(pl.Float64).sum()).sort("time_us")
    return merged["time_us"].to_numpy(), merged["count"].to_numpy()


def _growth(times: pl.DataFrame, duration_s: float) -> float | None:
    latency = times.filter(pl.col("quantity") == "latency")
    part_s = max(1, duration_s / 5)
    first = latency.filter(pl.col("second") < part_s)
    last = latency.filter(pl.col("second") >= duration_s - part_s)
    medians = [statistics(part)["p50"] for part in (first, last)]
    return medians[1] / medians[0] if all(medians) else None
