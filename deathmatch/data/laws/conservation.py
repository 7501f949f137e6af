"""Conservation: everything begun is answered, has failed or is under way.

Counts are integers, so that their bounds have no slack; only Little's law is about times and rates.
"""

import polars as pl

from deathmatch.data.laws.law import ALONE, KEY, Evidence, judged, law, nothing
from deathmatch.load import httperf, wsload_summary

# The headers of a segment: IPv4 20 (RFC 791) and TCP 20 to 60 (RFC 9293).
MOST_HEADERS_BYTES = 80
# httperf prints sizes to one decimal.
HALF_BYTE_STEP = 0.05
# roundtrip's bins are at most 0.8 % wide, and a time is its bin's centre.
HALF_BIN = 0.004
# Between an answer and the next request roundtrip only reads its clock twice: at most 0.25 % of the
# time in the reference dataset. A client that is idle for longer does not send when it may.
IDLE_SHARE = 0.05
# httperf prints mean times in 0.1 ms.
HALF_STEP_US = 50
# A load generator's descriptors that are no connections; and the error of its counters, which are
# read one after another, as a share of the connections begun since the last sample.
OWN_DESCRIPTORS, SKEW = 8, 0.1


@law("LAW-REQUESTS", "reject", "conservation", bound="none: whole numbers")
def requests(evidence: Evidence) -> pl.DataFrame:
    """Requests are replies, and what failed; messages due are echoed, lost or unsent.

    A request is answered, or its connection failed: one error for each, as none is pipelined.
    """
    points = evidence.reported
    if evidence.client == "wsload":
        ended = pl.sum_horizontal("replies", "messages_lost", "messages_unsent")
        return judged(points, pl.col("messages_due"), ended, ended)
    ended = pl.col("replies") + pl.col("errors_total")
    return judged(points, pl.col("requests"), pl.col("replies"), ended)


@law(
    "LAW-CONNECTIONS", "reject", "conservation",
    bound="none: whole numbers; one that failed after an answer counts twice",
)  # fmt: skip
def connections(evidence: Evidence) -> pl.DataFrame:
    """Connections asked for are those that were answered, and what failed, by its class."""
    if evidence.client == "wsload":
        outcomes = pl.sum_horizontal(f"outcome_{name}" for name in wsload_summary.OUTCOMES)
        return judged(evidence.reported, outcomes, pl.col("connections"), pl.col("connections"))
    if evidence.client != "httperf":
        return nothing(evidence)
    points = evidence.with_counted("connection_time")
    # Connections for which it had no descriptor or port were never begun.
    begun = pl.col("connections") + pl.sum_horizontal(httperf.OWN_ERRORS)
    ended = pl.col("counted") + pl.col("errors_total")
    # A connection of several requests may fail after a first answer, and one when it is closed.
    twice = pl.min_horizontal("counted", "errors_total")
    return judged(points, ended, begun, begun + twice)


@law(
    "LAW-HISTOGRAM", "reject", "conservation",
    bound="none; httperf counts a connection once, however many replies it had",
)  # fmt: skip
def histogram(evidence: Evidence) -> pl.DataFrame:
    """The histogram of times holds as many as there were replies."""
    replies = pl.col("replies")
    if evidence.client == "httperf":
        calls = evidence.load["requests_per_connection"]
        points = evidence.with_counted("connection_time")
        return judged(points, pl.col("counted"), replies / calls, replies)
    quantity = "latency" if evidence.client == "wsload" else "service_time"
    return judged(evidence.with_counted(quantity), pl.col("counted"), replies, replies)


@law(
    "LAW-BYTES", "reject", "conservation",
    bound="headers of 0 to 80 bytes a segment (RFC 791, RFC 9293); above only where nothing failed",
)  # fmt: skip
def bytes_received(evidence: Evidence) -> pl.DataFrame:
    """The bytes that the client's kernel received are those of the replies and headers.

    Every byte of an answer came in a segment with headers. There is no upper bound if connections
    failed, whose answers the client does not count, or for WebSocket, whose handshakes have any
    length.
    """
    points, replies = evidence.reported, pl.col("replies")
    if evidence.client == "wsload":
        least = replies * (2 + evidence.load["message_bytes"])
        return judged(points, pl.col("client_received_bytes"), least, None)
    if evidence.client == "httperf":
        size, step = pl.col("reply_total_bytes"), HALF_BYTE_STEP
    else:
        size, step = pl.col("reply_bytes"), 0
    headers = MOST_HEADERS_BYTES * pl.col("client_received_segments")
    whole = (pl.col("errors_total") == 0) & ALONE
    return judged(
        points,
        pl.col("client_received_bytes"),
        replies * (size - step),
        pl.when(whole).then((replies + 1) * (size + step) + headers),
    )


@law("LAW-LOAD", "reject", "conservation", bound="one request")
def did_something(evidence: Evidence) -> pl.DataFrame:
    """A load generator whose report is whole, before a server that ran, asked something."""
    asked = pl.col("messages_due" if evidence.client == "wsload" else "requests")
    ran = evidence.reported.filter(pl.col("server_state") == "ran")
    return judged(ran, asked, 1, None)


@law(
    "LAW-LITTLE", "reject", "Little 1961",
    bound="roundtrip: its connections, +0.4 % (half of a bin) and, in closed loop, -5 %; httperf: "
    "what the kernel's samples and its own peak allow, half of 0.1 ms a connection either "
    "way",
)  # fmt: skip
def little(evidence: Evidence) -> pl.DataFrame:
    """The rate of replies times their mean time is the mean number under way.

    J. D. C. Little, A Proof for the Queuing Formula L = λW, Operations Research 9 (1961). It holds
    for any system and order of service, so that only a wrong count, time or duration breaks it.
    """
    if evidence.client == "roundtrip":
        return _round_trips(evidence)
    if evidence.client == "httperf":
        return _connections(evidence)
    return nothing(evidence)


def _round_trips(evidence: Evidence) -> pl.DataFrame:
    """Each connection has at most one request under way; in closed loop, always one.

    No service time includes the time until a lost connection was open again.
    """
    points = evidence.with_counted("service_time")
    kept = (pl.col("errors_total") == 0) & (pl.col("idle_losses") == 0)
    always = (pl.col("offered_rate_rps") == 0) & kept
    connections = pl.lit(evidence.load["connections"])
    return judged(
        points,
        pl.col("total_us") / pl.col("test_duration_us"),
        pl.when(always).then(connections * (1 - IDLE_SHARE)),
        connections * (1 + HALF_BIN),
    )


def _connections(evidence: Evidence) -> pl.DataFrame:
    """The mean number of answered connections is that which the kernel saw under way.

    Between two samples that saw a and b connections, with n begun meanwhile, there were at most
    a + n at any time and at least b - n. Failed connections were under way, too, each for no longer
    than httperf waits.
    """
    points = evidence.with_counted("connection_time").join(
        _sampled(evidence.during), on=KEY, how="left"
    )
    step = HALF_STEP_US * pl.col("counted") / pl.col("test_duration_us")
    # Its mean over no connection is undefined.
    mean_us = pl.col("connection_time_avg_us").fill_null(0)
    calls, timeout_s = evidence.load["requests_per_connection"], evidence.load["timeout_s"]
    longest_us = 1e6 * timeout_s * (calls + 1)
    failed = pl.col("errors_total") * longest_us / pl.col("test_duration_us")
    most = pl.col("most_us") / pl.col("test_duration_us")
    fewest = pl.col("fewest_us") / pl.col("test_duration_us")
    return judged(
        points,
        pl.col("counted") * mean_us / pl.col("test_duration_us"),
        pl.max_horizontal(fewest - failed - step, pl.lit(0.0)),
        # The peak of several clients is null: then only the samples bound the number.
        pl.min_horizontal(most, pl.col("concurrent_connections")) + step,
    )


def _sampled(during: pl.DataFrame) -> pl.DataFrame:
    """Return KEY, and the most and the fewest connections under way, summed over time, in us."""
    begun = (1 + SKEW) * pl.col("client_active_opens").diff().over(KEY)
    took_us = pl.col("time_us").diff().over(KEY)
    before = pl.col("client_descriptors").shift().over(KEY)
    # Without its other descriptors, and connections that may have begun since the last sample.
    least = (pl.col("client_descriptors") - OWN_DESCRIPTORS - begun).clip(0)
    bounded = during.with_columns(most=took_us * (before + begun), fewest=took_us * least)
    known = pl.col("most").count() == pl.len() - 1
    return (
        bounded.group_by(KEY, maintain_order=True)
        .agg(
            most_us=pl.when(known & (pl.len() > 1)).then(pl.col("most").sum()),
            fewest_us=pl.when(known & (pl.len() > 1)).then(pl.col("fewest").sum()),
        )
    )  # fmt: skip
