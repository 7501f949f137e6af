"""The run's own state: steady while it was measured, and fair to its connections."""

import polars as pl

from deathmatch.checks.rule import Rules
from deathmatch.data.laws.law import Evidence, Law, judged, nothing
from deathmatch.data.steadiness import LEAST_CHANGE, PLATEAU

LAWS = Rules(kind=Law)


@LAWS.add(
    "LAW-STEADY", "warn", "Mann 1945; Kendall 1975; Hamed and Rao 1998; Pettitt 1979",
    bound="a change of 10 %, at 1 % of false alarms (Mann-Kendall with Hamed and Rao's "
    "correction, Pettitt), of ten intervals or more",
    # While a queue grows, times depend on how long the run is; what was counted does not.
    columns=("message_latency", "latency", "service_time", "response_time", "connection_time"),
)  # fmt: skip
def steady(evidence: Evidence) -> pl.DataFrame:
    """What is measured neither drifts nor jumps while all load is offered."""
    points = evidence.reported.drop_nulls("course")
    change = pl.when(pl.col("course") == PLATEAU).then(0.0).otherwise(pl.col("course_change"))
    return judged(points, change, -LEAST_CHANGE, LEAST_CHANGE)


@LAWS.add("LAW-FAIR", "warn", "the definition", bound="three messages due on it, none echoed")
def fair(evidence: Evidence) -> pl.DataFrame:
    """No connection that stood to the end got nothing, where most messages were echoed."""
    if evidence.client != "wsload":
        return nothing(evidence)
    # Where half of all is lost, connections that get nothing are to be expected.
    served = evidence.reported.filter(2 * pl.col("replies") >= pl.col("messages_due"))
    return judged(served, pl.col("connections_starved"), None, 0)
