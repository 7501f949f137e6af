"""How connections are accepted, and what became of those that were offered.

In: the record that `deathmatch accepting` wrote, data/accepting/<name>.json; points and times of
httperf. Out: how long a request waited in the accept queue against what the queue's length says,
and how often threads were woken, with intervals over repetitions; counts and shares of connections
by outcome, and the points with the kernel's drops by their cause.

A SYN that finds a queue full is dropped and sent again 1, 3 and 7 s after the first. A client
whose handshake was dropped at its last step believes that it is connected: it sends its request
again and again. So the connection times of answered connections tell which way they were late.
"""

import polars as pl

from deathmatch.analysis import phrases, queue_model, stats
from deathmatch.analysis.provenance import Record
from deathmatch.analysis.stats import Interval
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


SYN_S = (0.0, *queue_model.RETRIES_S)
# A request is sent again after its connect: a tail loss probe (RFC 8985), then timeouts that double
# from Linux's least one of 0.2 s. As observed, since the last is an estimate from the round trip.
REQUEST_RETRIES_S = (0.2, 0.4, 0.8, 1.6, 3.3)

OUTCOMES = ["at once", "after 1 retry", "after 2 retries", "after 3 retries", "timed out", "reset"]


def outcomes(points: pl.DataFrame, times: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Return for each group and outcome how many of its connections had it.

    Columns: `by`, `outcome` (one of OUTCOMES, each always there), `connections`, `share_percent`.
    An answered connection's retries follow from its time: a request that was sent again more
    than 2 s after its connect counts with the next class.
    """
    time_s = pl.col("time_us") / 1e6
    retries = sum((time_s >= at).cast(pl.Int64) for at in SYN_S[1:])
    answered = times.filter(pl.col("quantity") == "connection_time").select(
        *by,
        retries.replace_strict(dict(enumerate(OUTCOMES)), return_dtype=pl.String).alias("outcome"),
        pl.col("count").cast(pl.Int64),
    )
    errors = {"timed out": "errors_client_timeout", "reset": "errors_connection_reset"}
    failed = [
        points.select(*by, pl.lit(name).alias("outcome"), count=pl.col(column).cast(pl.Int64))
        for name, column in errors.items()
    ]
    counted = (
        pl.concat([answered, *failed])
        .group_by(*by, "outcome", maintain_order=True)
        .agg(pl.col("count").sum())
    )
    total = points.group_by(by, maintain_order=True).agg(
        pl.col("connections").sum().alias("_total")
    )
    by_outcome = (
        total.join(pl.DataFrame({"outcome": OUTCOMES}), how="cross")
        .join(counted, [*by, "outcome"], "left")
        .with_columns(connections=pl.col("count").fill_null(0))
        .with_columns(share_percent=100 * pl.col("connections") / pl.col("_total"))
    )
    order = pl.col("outcome").replace_strict({name: i for i, name in enumerate(OUTCOMES)})
    return by_outcome.sort(*by, order).select(*by, "outcome", "connections", "share_percent")


def implied_retries(by_outcome: pl.DataFrame) -> int:
    """Return how many SYN retries the answered connections of `outcomes` made, by their times."""
    return sum(
        number * by_outcome.filter(pl.col("outcome") == name)["connections"].sum()
        for number, name in enumerate(OUTCOMES[:4])
    )


def drops(points: pl.DataFrame) -> pl.DataFrame:
    """Return the points with what was dropped where, by the counters of the kernel (Linux 6).

    `syns_syn_queue`: SYNs that found the SYN queue full, the drops that are no overflow;
    `syns_accept_queue`: SYNs that found the accept queue full. Every dropped SYN is sent again
    while its client has patience, so both together are the client's SYN retries.
    `acks_accept_queue`: last ACKs and requests that found the accept queue full, the overflows
    that are left.
    """
    syn_queue = pl.col("server_listen_drops") - pl.col("server_listen_overflows")
    accept_queue = (pl.col("client_syn_retransmissions") - syn_queue).clip(0)
    acks = (pl.col("server_listen_overflows") - accept_queue).clip(0)
    return points.with_columns(
        syns_syn_queue=syn_queue, syns_accept_queue=accept_queue, acks_accept_queue=acks
    )
