"""How connections are accepted, from data/accepting/<name>.json.

In: the record that `deathmatch accepting` wrote. Out: how long a request waited in the accept queue
against what the queue's length says, and how often threads were woken, with intervals over
repetitions.
"""

import polars as pl

from deathmatch.analysis import phrases, queue_model, stats
from deathmatch.analysis.committed import Record
from deathmatch.analysis.interval import Interval
from deathmatch.load import histogram

WAY = {
    "herd": "one socket without EPOLLEXCLUSIVE",
    "several": "one socket with EPOLLEXCLUSIVE",
    "reuseport": "a socket each by SO_REUSEPORT",
}
SCHEMA = {
    "accept": pl.String, "threads": pl.Int64, "backlog": pl.Int64, "work_us": pl.Int64,
    "rate_rps": pl.Int64, "repetition": pl.Int64, "accepted": pl.Int64, "waits": pl.Int64,
    "empty_accepts": pl.Int64, "voluntary_switches": pl.Int64, "other_switches": pl.Int64,
    "cpu_us": pl.Int64, "had_us": pl.List(pl.List(pl.Int64)), "replies": pl.Int64,
}  # fmt: skip
COUNTED = ("voluntary_switches", "waits", "empty_accepts", "cpu_us")
FULL = "places × service time"


def frame(record: Record) -> pl.DataFrame:
    """Return a row for each reading: SCHEMA."""
    return pl.DataFrame(record.readings, schema=SCHEMA)


def herd(every: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each way and number of threads that had nothing to do but to accept.

    Columns: `way`, `threads`, INTERVAL of the voluntary switches a connection, and medians of the
    other COUNTED a connection.
    """
    readings = every.filter(work_us=0).with_columns(
        *(pl.col(name) / pl.col("accepted") for name in COUNTED),
        way=pl.col("accept").replace_strict(WAY),
    )
    key = ["way", "threads"]
    switches = stats.summarise(readings, key, COUNTED[0])
    others = readings.group_by(key, maintain_order=True).agg(pl.col(COUNTED[1:]).median())
    order = pl.col("way").replace_strict({name: at for at, name in enumerate(WAY.values())})
    return switches.join(others, on=key).sort("threads", order)


def waits(every: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each reading of a server with work to do, with how long requests waited.

    Columns: `backlog`, `rate_rps`, `repetition`; `service_us`, the server's CPU
    time for a connection; `median_us` and `p99_us` of the wait; `full_us`, what a full queue takes
    to serve (`queue_model.linux_places`).
    """
    readings = every.filter(pl.col("work_us") > 0)
    # Each pair is a time's upper bound, 1 % too high at the most, and how many waited so long.
    waited = [
        pl.DataFrame(had, schema={"time_us": pl.Int64, "count": pl.Int64}, orient="row")
        for had in readings["had_us"].to_list()
    ]
    return readings.select(
        "backlog", "rate_rps", "repetition",
        service_us=pl.col("cpu_us") / pl.col("accepted"),
        median_us=pl.Series([histogram.quantile_us(one, 0.5) for one in waited], dtype=pl.Int64),
        p99_us=pl.Series([histogram.quantile_us(one, 0.99) for one in waited], dtype=pl.Int64),
    ).with_columns(
        full_us=queue_model.linux_places(pl.col("backlog")) * pl.col("service_us")
    )  # fmt: skip


def curves(readings: pl.DataFrame) -> pl.DataFrame:
    """Return the median wait by rate and backlog: `load`, `backlog`, INTERVAL; and a full queue's.

    The last `load` is what the length of the queue says.
    """
    top = readings["rate_rps"].max()
    measured = stats.summarise(readings, ["rate_rps", "backlog"], "median_us").with_columns(
        load=pl.col("rate_rps").map_elements(_offered, return_dtype=pl.String)
    )
    predicted = stats.summarise(readings.filter(rate_rps=top), ["rate_rps", "backlog"], "full_us")
    both = pl.concat([measured, predicted.with_columns(load=pl.lit(FULL))])
    return both.sort("rate_rps", "backlog").drop("rate_rps")


def _offered(rate_rps: int) -> str:
    return f"{phrases.number(rate_rps)} req/s offered"


def full(readings: pl.DataFrame, backlog: int) -> Interval:
    """Return the interval of the median wait at the highest rate over what a full queue takes."""
    top = readings.filter(rate_rps=readings["rate_rps"].max(), backlog=backlog)
    return stats.interval((top["median_us"] / top["full_us"]).to_list())
