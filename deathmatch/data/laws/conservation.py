"""Conservation: what was begun is answered, has failed or is under way, and nothing else.

All of it is counted by integers, so that no bound has slack.
"""

import polars as pl

from deathmatch.data.laws.law import ALONE, Evidence, Law, judged, nothing
from deathmatch.load import httperf, wsload_summary

# IPv4 20 (RFC 791) and TCP 20 to 60 (RFC 9293): what a segment takes beside its data.
MOST_HEADERS_BYTES = 80
# httperf prints sizes to one decimal.
HALF_BYTE_STEP = 0.05


def _requests(evidence: Evidence) -> pl.DataFrame:
    """A request is answered, or its connection failed: one error for each, as none is pipelined."""
    points = evidence.reported
    if evidence.client == "wsload":
        ended = pl.sum_horizontal("replies", "messages_lost", "messages_unsent")
        return judged(points, pl.col("messages_due"), ended, ended)
    ended = pl.col("replies") + pl.col("errors_total")
    return judged(points, pl.col("requests"), pl.col("replies"), ended)


def _connections(evidence: Evidence) -> pl.DataFrame:
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


def _histogram(evidence: Evidence) -> pl.DataFrame:
    replies = pl.col("replies")
    if evidence.client == "httperf":
        calls = evidence.load["requests_per_connection"]
        points = evidence.with_counted("connection_time")
        return judged(points, pl.col("counted"), replies / calls, replies)
    quantity = "latency" if evidence.client == "wsload" else "service_time"
    return judged(evidence.with_counted(quantity), pl.col("counted"), replies, replies)


def _bytes(evidence: Evidence) -> pl.DataFrame:
    """Every byte of an answer came in a segment, with headers of its own.

    Answers of connections that failed are not counted by the client, handshakes of WebSocket are
    of any length: there, only the least is known.
    """
    points, replies = evidence.reported, pl.col("replies")
    if evidence.client == "wsload":
        least = replies * (2 + evidence.load["message_bytes"])
        return judged(points, pl.col("client_received_bytes"), least, None)
    if evidence.client == "httperf":
        each, step = pl.col("reply_total_bytes"), HALF_BYTE_STEP
    else:
        each, step = pl.col("reply_bytes"), 0
    headers = MOST_HEADERS_BYTES * pl.col("client_received_segments")
    whole = (pl.col("errors_total") == 0) & ALONE
    return judged(
        points,
        pl.col("client_received_bytes"),
        replies * (each - step),
        pl.when(whole).then((replies + 1) * (each + step) + headers),
    )


def _did_something(evidence: Evidence) -> pl.DataFrame:
    asked = pl.col("messages_due" if evidence.client == "wsload" else "requests")
    ran = evidence.reported.filter(pl.col("server_state") == "ran")
    return judged(ran, asked, 1, None)


REQUESTS = Law(
    id="LAW-REQUESTS",
    statement="Requests are replies, and what failed; messages due are echoed, lost or unsent.",
    bound="none: whole numbers",
    source="conservation",
    judge=_requests,
)
CONNECTIONS = Law(
    id="LAW-CONNECTIONS",
    statement="Connections asked for are those that were answered, and what failed, by its class.",
    bound="none: whole numbers; one that failed after an answer counts twice",
    source="conservation",
    judge=_connections,
)
HISTOGRAM = Law(
    id="LAW-HISTOGRAM",
    statement="The histogram of times holds as many as there were replies.",
    bound="none; httperf counts a connection once, however many replies it had",
    source="conservation",
    judge=_histogram,
)
BYTES = Law(
    id="LAW-BYTES",
    statement="The bytes that the client's kernel received are those of the replies and headers.",
    bound="headers of 0 to 80 bytes a segment (RFC 791, RFC 9293); above only where nothing failed",
    source="conservation",
    judge=_bytes,
)
LOAD = Law(
    id="LAW-LOAD",
    statement="A load generator whose report is whole, before a server that ran, asked something.",
    bound="one request",
    source="conservation",
    judge=_did_something,
)
