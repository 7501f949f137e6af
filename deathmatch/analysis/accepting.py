"""Outcomes of the connections that were offered to a server in overload.

In: points and times of httperf. Out: counts and shares of connections by outcome, and the points
with the kernel's drops by their cause.

A SYN that finds a queue full is dropped and sent again 1, 3 and 7 s after the first. A client
whose handshake was dropped at its last step believes that it is connected: it sends its request
again and again. So the times of answered connections show why they were late.
"""

import polars as pl

# Since the first SYN: an initial timeout of 1 s (RFC 6298), which doubles each time.
RETRIES_S = (1.0, 3.0, 7.0)
SYN_S = (0.0, *RETRIES_S)
# A request is sent again after its connect: a tail loss probe (RFC 8985), then timeouts that double
# from Linux's minimum of 0.2 s. Observed values, as timeouts also depend on the round trip.
REQUEST_RETRIES_S = (0.2, 0.4, 0.8, 1.6, 3.3)

OUTCOMES = ["at once", "after 1 retry", "after 2 retries", "after 3 retries", "timed out", "reset"]


def outcomes(points: pl.DataFrame, times: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Return how many connections of each group had each outcome.

    Columns: `by`, `outcome` (every one of OUTCOMES), `connections`, `share_percent`.
    An answered connection's retries follow from its time: a request that was sent again when a
    SYN would have been, 1.6 s after its connect for example, counts with the next class.
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
    """Return the points with the drops at each place, by the counters of the kernel (Linux 6).

    `syns_syn_queue`: SYNs that found the SYN queue full, which are drops but no overflows;
    `syns_accept_queue`: SYNs that found the accept queue full. Every dropped SYN is sent again
    while its client has patience, so both together are the client's SYN retries.
    `acks_accept_queue`: last ACKs and requests that found the accept queue full, the remaining
    overflows.
    """
    syn_queue = pl.col("server_listen_drops") - pl.col("server_listen_overflows")
    accept_queue = (pl.col("client_syn_retransmissions") - syn_queue).clip(0)
    acks = (pl.col("server_listen_overflows") - accept_queue).clip(0)
    return points.with_columns(
        syns_syn_queue=syn_queue, syns_accept_queue=accept_queue, acks_accept_queue=acks
    )


def linux_places(backlog: int) -> int:
    """Return how many connections Linux's accept queue holds (sk_acceptq_is_full, sock.h).

    One more than the backlog, which is compared with `>` before the next is added.
    """
    return backlog + 1


def freebsd_places(backlog: int) -> int:
    """Return how many connections FreeBSD 7.2's holds (sonewconn, sys/kern/uipc_socket.c).

    One more than one and a half times the backlog: `so_qlen > 3 * so_qlimit / 2`, in integers,
    before the next is added.
    """
    return 3 * backlog // 2 + 1
