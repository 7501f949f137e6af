"""Conservation: what was begun is answered, has failed or is under way, and nothing else.

All of it is counted by integers, so that no bound has slack.
"""

import polars as pl

from deathmatch.data.laws.law import ALONE, Evidence, judged, law, nothing
from deathmatch.load import httperf, wsload_summary

# IPv4 20 (RFC 791) and TCP 20 to 60 (RFC 9293): what a segment takes in addition to its data.
MOST_HEADERS_BYTES = 80
# httperf prints sizes to one decimal.
HALF_BYTE_STEP = 0.05


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
    # Those that it had no descriptor or port for were never begun.
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

    Every byte of an answer came in a segment, with headers of its own.

    Answers of connections that failed are not counted by the client, handshakes of WebSocket are
    of any length: there, only the least is known.
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
