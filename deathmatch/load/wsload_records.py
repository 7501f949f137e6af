"""The records of wsload as histograms, which a trial keeps in place of messages and connections.

They have times to DIGITS for each second of intended time, without the connection of a message. A
quantile of a second is that of the same message, with an error of at most 0.5 %.
"""

from pathlib import Path

import polars as pl

from deathmatch.load import histogram

# Quantity of the histograms -> prefix of its columns.
QUANTITIES = {
    "handshake_time": "handshake_time",
    "latency": "message_latency",
    "service_time": "service_time",
    "connection_time": "connection_time",
}
# A null time is that of a message or connection that never ended.
TIMES_SCHEMA = {
    "quantity": pl.Enum(list(QUANTITIES)), "second": pl.Int32, "time_us": pl.Int64,
    "count": pl.Int32,
}  # fmt: skip
# Times below 1 ms are exact to a microsecond. With more digits, each message of an overload has a
# different time: with four, five minutes of 10,000 a second took 7 MB, which no lossless format
# shortens.
DIGITS = 3

SHARES_SCHEMA = {"due": pl.Int32, "echoed": pl.Int32, "count": pl.Int32}
# A connection is starved if so many messages were due on it and none was echoed.
STARVED_DUE = 3


def histograms(records: Path) -> pl.DataFrame:
    """Return the counts of each quantity's times, to DIGITS, in each second of intended time.

    Columns are those of TIMES_SCHEMA; each quantity is in one piece, sorted by second and time,
    null times last. `latency` and `service_time` run from a message's intended and actual send to
    its echo; `handshake_time` and `connection_time` from a connection's intended opening to its
    upgrade and to the TCP connection. They are null without such an end.
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
    """Return the counts of connections by messages due and echoed: SHARES_SCHEMA, sorted.

    Only connections that were open to the end count; the outcome of others explains their share.
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


def starved(found: pl.DataFrame) -> int:
    """Return the number of starved connections, given their shares."""
    nothing = (pl.col("due") >= STARVED_DUE) & (pl.col("echoed") == 0)
    return int(found.filter(nothing)["count"].sum())


def _counted(events: pl.LazyFrame, quantity: str, begin: str, end: str) -> pl.LazyFrame:
    second = (pl.col("intended_us") // 1_000_000).cast(pl.Int32)
    time_us = histogram.rounded_us(pl.col(end) - pl.col(begin), DIGITS)
    return (
        events.group_by(second=second, time_us=time_us)
        .agg(count=pl.len().cast(pl.Int32))
        .sort("second", "time_us", nulls_last=True)
        .select(
            pl.lit(quantity, TIMES_SCHEMA["quantity"]).alias("quantity"),
            "second",
            "time_us",
            "count",
        )
    )


_SERIES = ("quantity", "second")


def steps(times: pl.DataFrame) -> pl.DataFrame:
    """Return the histograms with `step_us`, the difference to the previous time.

    This makes the file a quarter smaller.
    """
    earlier_us = pl.col("time_us").shift(fill_value=0).over(_SERIES)
    stepped = times.with_columns(step_us=pl.col("time_us") - earlier_us)
    return stepped.select(*_SERIES, "step_us", "count")


def of_steps(stored: pl.DataFrame) -> pl.DataFrame:
    """Return the histograms, with TIMES_SCHEMA, from which `steps` made these."""
    return (
        stored.with_columns(time_us=pl.col("step_us").cum_sum().over(_SERIES))
        .select(list(TIMES_SCHEMA))
        .cast(TIMES_SCHEMA)
    )
