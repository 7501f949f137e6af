"""The records of wsload as histograms: what a trial keeps of every message and connection.

They hold times to DIGITS for each second of intended time, and lose which connection a message was
on: a quantile of a second is that of the same message, at most 0.05 % off.
"""

from pathlib import Path

import numpy as np
import polars as pl

from deathmatch.load import histogram

# Quantity of the histograms -> how its columns begin.
QUANTITIES = {
    "handshake_time": "handshake_time",
    "latency": "message_latency",
    "service_time": "service_time",
    "connection_time": "connection_time",
}
# A null time is that of a message or connection that never got so far.
TIMES_SCHEMA = {
    "quantity": pl.Enum(list(QUANTITIES)), "second": pl.Int32, "time_us": pl.Int64,
    "count": pl.Int32,
}  # fmt: skip
# Times below 10 ms are whole microseconds. With more digits, each message of an overload has a time
# of its own: five minutes of 10,000 a second took 7 MB, which no lossless form shortens.
DIGITS = 4
# Up to here an array with a place for every microsecond is cheaper than sorting: 128 MB.
_DENSE_US = 1 << 24
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}
STATISTICS = {"mean": pl.Float64, "stddev": pl.Float64} | dict.fromkeys(
    [*QUANTILES, "max"], pl.Int64
)

SHARES_SCHEMA = {"due": pl.Int32, "echoed": pl.Int32, "count": pl.Int32}
# A connection on which so many messages were due and none was echoed got nothing.
STARVED_DUE = 3


def histograms(records: Path) -> pl.DataFrame:
    """Return how often each quantity took how long, to DIGITS, in each second of intended time.

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


def series(frame: pl.DataFrame) -> np.ndarray:
    """Return at which rows of the histograms another second or quantity begins."""
    keys = [frame["second"].to_numpy(), frame["quantity"].to_physical().to_numpy()]
    changes = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    return np.append(np.zeros(min(1, len(frame)), int), np.flatnonzero(changes) + 1)


def steps(times: pl.DataFrame) -> pl.DataFrame:
    """Return the histograms with each time as its distance from the one before: `step_us`.

    The file is a quarter smaller so.
    """
    earlier_us = times["time_us"].shift().scatter(series(times), 0)
    stepped = times.with_columns(step_us=times["time_us"] - earlier_us)
    return stepped.select("quantity", "second", "step_us", "count")


def of_steps(stored: pl.DataFrame) -> pl.DataFrame:
    """Return the histograms, as in TIMES_SCHEMA, that `steps` was made of."""
    stored = stored.cast({"quantity": TIMES_SCHEMA["quantity"]})
    step_us = stored["step_us"].fill_null(0).to_numpy()
    # Sums over the whole file, less what they had come to before each series.
    summed_us, first = step_us.cumsum(), series(stored)
    before_us = summed_us[first] - step_us[first]
    summed_us -= np.repeat(before_us, np.diff(first, append=len(stored)))
    time_us = pl.when(pl.col("step_us").is_not_null()).then(pl.Series(summed_us))
    return stored.with_columns(time_us=time_us).select(list(TIMES_SCHEMA))


def statistics(counted: pl.DataFrame) -> dict[str, float | int | None]:
    """Return mean, stddev, p50, p95, p99, p999 and max, in us, of time_us with their count.

    Quantiles are those of `histogram.quantiles_us`; stddev is that of the population.
    """
    known = counted.drop_nulls("time_us")
    if not len(known):
        return dict.fromkeys(STATISTICS)
    times, counts = _merged(known)
    mean = np.average(times, weights=counts)
    variance = np.average((times - mean) ** 2, weights=counts)
    found: dict[str, float | int | None] = {"mean": float(mean), "stddev": float(variance**0.5)}
    distinct = pl.DataFrame({"time_us": times, "count": counts})
    quantiles_us = histogram.quantiles_us(
        distinct, list(QUANTILES.values()), counted["count"].sum()
    )
    return found | dict(zip(QUANTILES, quantiles_us)) | {"max": int(times[-1])}


def _merged(known: pl.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct times in order, and how many were counted of each."""
    if known["time_us"].max() < _DENSE_US:
        every = np.bincount(known["time_us"].to_numpy(), weights=known["count"].to_numpy())
        times = np.flatnonzero(every)
        return times, every[times]
    merged = known.group_by("time_us").agg(pl.col("count").cast(pl.Float64).sum()).sort("time_us")
    return merged["time_us"].to_numpy(), merged["count"].to_numpy()
