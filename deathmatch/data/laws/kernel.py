"""The kernel's counters compared with the load generator's report, and with each other."""

import polars as pl

from deathmatch.data.laws.law import ALONE, KEY, RATE, TRIAL, Evidence, judged, law, nothing
from deathmatch.load.registry import IDLE_FACTOR

# A SYN is sent again after 1 s at the earliest (RFC 6298, 2.1). A bin's centre may be lower by half
# of its width, and wsload's times are rounded to three digits.
RETRY_US = 985_000
CPU_QUEUE_PACKETS = 1000
"""The longest queue of packets in front of the listeners: `net.core.netdev_max_backlog`.

This is Linux's default, which no testbed changes; /proc/net/softnet_stat counts dropped packets.
"""
# Counters of the network, which do not fall when a process ends.
_COUNTERS = ("server_listen", "server_passive", "server_sync", "server_retr", "server_resets",
             "client_active", "client_attempt", "client_syn", "client_received",
             "client_sent")  # fmt: skip


@law(
    "LAW-OPENS", "reject", "ActiveOpens, RFC 4022",
    bound="none; roundtrip's clients begin one more each to learn the answer, or two in httperf's "
    "place; a machine of its own has other connections too",
)  # fmt: skip
def opens(evidence: Evidence) -> pl.DataFrame:
    """The connections that the client says it began are those that its kernel counted.

    A kernel counts each connection that a client begins (ActiveOpens, RFC 4022). roundtrip begins
    one more to learn the answer, in each client; where each request has a connection of its own,
    two more.
    """
    opens, points = pl.col("client_active_opens"), evidence.reported
    of_client = {"roundtrip": "connects", "wsload": "connections_opened"}
    begun = pl.col(of_client.get(evidence.client, "connections"))
    to_learn = 1 if evidence.client == "roundtrip" else 2
    by_roundtrip = (pl.col("load_generator") == "roundtrip").cast(pl.Int64)
    more = to_learn * by_roundtrip * pl.max_horizontal("clients", pl.lit(1))
    return judged(points, opens, begun, pl.when(ALONE).then(begun + more))


@law(
    "LAW-ACCEPTS", "reject", "PassiveOpens, RFC 4022",
    bound="none from below; a server's own connections are counted too",
)  # fmt: skip
def accepts(evidence: Evidence) -> pl.DataFrame:
    """The server's kernel accepted each connection that was answered.

    It made a socket for each (PassiveOpens). There may be more: connections between the server's
    own processes, and those that failed.
    """
    accepts = pl.col("server_passive_opens")
    if evidence.client == "httperf":
        return judged(evidence.with_counted("connection_time"), accepts, pl.col("counted"), None)
    if evidence.client == "wsload":
        return judged(evidence.reported, accepts, pl.col("connections_upgraded"), None)
    connected = pl.when(pl.col("errors_total") == 0).then("connects")
    return judged(evidence.reported, accepts, connected, None)


@law(
    "LAW-HELD", "reject", "CurrEstab, RFC 4022",
    bound="no more than were opened; no fewer, where all stood for a fifth of the run",
)  # fmt: skip
def held(evidence: Evidence) -> pl.DataFrame:
    """Connections that are held together are counted together, by samples or by ss.

    A sample taken while all stand may be missing if they stood for less than its interval.
    """
    if IDLE_FACTOR in evidence.points.columns:
        asked = pl.col(IDLE_FACTOR)
        ran = evidence.reported.filter(pl.col("server_state") == "ran")
        # If a load opens connections at a rate, any of them may still be open.
        busy = evidence.load.get("connections", pl.col("connections"))
        return judged(ran, pl.col("idle_held"), asked, asked + busy)
    if evidence.client != "wsload":
        return nothing(evidence)
    most = evidence.during.group_by(KEY, maintain_order=True).agg(
        seen=pl.col("client_established").max()
    )
    points = evidence.reported.join(most, on=KEY, how="left")
    # If every connection was open early, later samples saw all of them.
    early = pl.col("handshake_time_max_us") < 0.8 * pl.col("duration_us")
    all_stood = pl.col("outcome_completed") == pl.col("connections")
    held = pl.when(early & all_stood).then("connections_upgraded")
    return judged(points, pl.col("seen"), held, pl.when(ALONE).then("connections_opened"))


@law(
    "LAW-DROPS", "reject", "tcp_conn_request, Linux",
    bound="none: the kernel counts the one with the other",
)  # fmt: skip
def drops(evidence: Evidence) -> pl.DataFrame:
    """Overflows of the accept queue are drops of the listener."""
    points = evidence.points
    return judged(points, pl.col("server_listen_overflows"), None, pl.col("server_listen_drops"))


@law(
    "LAW-RETRIES", "reject", "TCPSynRetrans, ListenDrops and netdev_max_backlog, Linux",
    bound="none; of servers that ran to the end, as a dying listener counts nothing, and of no "
    "more SYNs at once than a CPU's queue of packets holds",
)  # fmt: skip
def retries(evidence: Evidence) -> pl.DataFrame:
    """On one machine, a SYN is sent again only if the listener dropped it.

    The link loses nothing. But half-open connections of a server that ends are lost uncounted, and
    if more SYNs come at a time than a CPU's queue holds, some never reach the listener.
    """
    here = evidence.reported.filter(ALONE, pl.col("server_state") == "ran")
    if "connections_opening_max" in here.columns:
        burst = pl.col("connections_opening_max").fill_null(0)
        here = here.filter(burst <= CPU_QUEUE_PACKETS)
    return judged(here, pl.col("client_syn_retransmissions"), None, pl.col("server_listen_drops"))


@law(
    "LAW-RETRY-TIMES", "reject", "RFC 6298, 2.1",
    bound="one such connection for as many SYNs as fit into the time limit, one a second",
)  # fmt: skip
def retry_times(evidence: Evidence) -> pl.DataFrame:
    """A connection whose SYN was sent again took a second, or failed.

    A SYN is sent again at most once for each second of the time limit.
    """
    if evidence.client not in ("httperf", "wsload"):
        return nothing(evidence)
    quantity = "handshake_time" if evidence.client == "wsload" else "connection_time"
    slow = (
        evidence.times.lazy()
        .filter(pl.col("quantity") == quantity, pl.col("time_us") >= RETRY_US)
        .group_by(KEY, maintain_order=True)
        .agg(slow=pl.col("count").sum())
        .collect()
    )
    points = evidence.reported.join(slow, on=KEY, how="left", maintain_order="left")
    failed = pl.col("errors_total") if evidence.client == "httperf" else (
        pl.col("connections_opened") - pl.col("connections_upgraded")
    )  # fmt: skip
    times = max(1, int(evidence.load["timeout_s"]))
    retries = pl.col("client_syn_retransmissions")
    return judged(points, pl.col("slow").fill_null(0) + failed, retries / times, None)


@law(
    "LAW-QUEUE", "reject", "sk_acceptq_is_full, Linux",
    bound="one more for each listener, of which a thread has one at most",
)  # fmt: skip
def queue(evidence: Evidence) -> pl.DataFrame:
    """No accept queue is longer than its limit.

    Linux allows one more than the listener asked for (sk_acceptq_is_full); a thread has one
    listener at most.
    """
    most = pl.col("accept_queue_limit") + pl.max_horizontal("server_threads", pl.lit(1))
    return judged(evidence.during, pl.col("accept_queue_connections"), None, most)


@law("LAW-COUNTED", "reject", "two samples a point", bound="none")
def counted(evidence: Evidence) -> pl.DataFrame:
    """A server that ran has counters of its kernel."""
    ran = evidence.points.filter(pl.col("server_state") == "ran")
    return judged(ran, pl.col("server_passive_opens").is_not_null().cast(pl.Int64), 1, None)


@law("LAW-GROWING", "reject", "RFC 2578, Counter32", bound="none")
def growing(evidence: Evidence) -> pl.DataFrame:
    """Counters of a network do not fall."""
    grow = [name for name in evidence.samples.columns if name.startswith(_COUNTERS)]
    falls = (pl.col(name).diff().over(TRIAL).min().over(KEY) < 0 for name in grow)
    fallen = pl.sum_horizontal(fall.cast(pl.Int64) for fall in falls)
    ordered = evidence.samples.with_columns(fallen=fallen).drop_nulls(RATE)
    own = [name for name in evidence.points.columns if name.startswith(_COUNTERS)]
    below = pl.sum_horizontal((pl.col(name) < 0).cast(pl.Int64) for name in own)
    parts = [judged(ordered, pl.col("fallen"), None, 0), judged(evidence.points, below, None, 0)]
    return pl.concat(parts)
