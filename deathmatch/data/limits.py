"""Whose limit a point shows: the server's, or that of the testbed that offered the load.

A load generator can open connections on time and read their replies late, and its report does not
show it. So the testbed's own limit is measured: the null server answers at once, and what is late
there is late for every server. In: an experiment's tables. Out: a column of its points.
"""

from dataclasses import dataclass

import polars as pl

from deathmatch.agent.kernel import MODES
from deathmatch.data.laws.law import KEY, TRIAL, Evidence
from deathmatch.quantities.quantity import RATE

ON_TIME_US = 100_000
"""A reply is on time within 100 ms of its intended send: where a user notices (Nielsen 1993)."""
ON_TIME_RATIO = 0.99
USED_UP = 0.9
"""The share of its CPU time from which on a server's CPU is its limit."""
OVERFLOWED = 0.01
"""Overflows of the listen queue over connections from which on the queue is the limit."""
LATE_OPENING_US = 2_000
"""Connections that were to be opened this long before count as a burst of the client's making."""

NONE, SERVER, TESTBED, CLIENT = "none", "server", "testbed", "client"
LIMITS = (NONE, SERVER, TESTBED, CLIENT)
COLUMNS = {"server_cpu_ratio": pl.Float64, "on_time_ratio": pl.Float64, "limit": pl.String}
"""What `marked` adds to points.

`limit`: "none" where the replies were on time; "server" where the server's CPU, its listen queue or
its end was the limit, or where the null server answered that rate on time; "client" by the load
generator's own report; "testbed" where none of it is so; null where the null server was not
measured. `server_cpu_ratio` is the CPU time that the server used while load was offered, over what
it could have; `on_time_ratio` the connections, or messages, answered within ON_TIME_US over those
due.
"""

CEILINGS = ("null", "ws-null")
# By load generator: the histogram whose times are on time or not, and the column of what was due.
_ANSWERED = {
    "httperf": ("connection_time", "connections"),
    "roundtrip": ("latency", "requests"),
    "wsload": ("latency", "messages_due"),
}
SAMPLE_US = 60_000
"""The last sample of a point is taken up to so long after its last send."""
IDLE = ("idle", "iowait")
TAKEN = [f"cpu_{mode}_us" for mode in MODES]
OURS = ["server_cpu_ns", "client_cpu_ns"]


def marked(given: Evidence) -> pl.DataFrame:
    """Return the points with COLUMNS, in their order."""
    points = given.points.drop(COLUMNS, strict=False)
    if given.client is None:
        return points
    points = points.join(_cpu(given), on=KEY, how="left", maintain_order="left")
    points = points.join(_on_time(given), on=KEY, how="left", maintain_order="left")
    carried_rps = _carried_rps(points)
    return points.with_columns(limit=_limit(points, carried_rps)).select(*points.columns, "limit")


def _cpu(given: Evidence) -> pl.DataFrame:
    """Return KEY and `server_cpu_ratio`: of the samples while the rate was offered."""
    offered = given.during.join(given.points.select(*KEY, "duration_us"), on=KEY)
    since_us = pl.col("time_us") - pl.col("time_us").min().over(KEY)
    used = offered.filter(since_us <= pl.col("duration_us") + SAMPLE_US).group_by(
        KEY, maintain_order=True
    ).agg(
        used_ns=pl.col("server_cpu_ns").max() - pl.col("server_cpu_ns").min(),
        took_ns=1000 * (pl.col("time_us").max() - pl.col("time_us").min()),
    )  # fmt: skip
    # "cpu_quota_us 40000; cpu_period_us 100000; …"
    quota, period = (
        pl.col("throttle").str.extract(rf"cpu_{name}_us (\d+)").cast(pl.Float64)
        for name in ("quota", "period")
    )
    cpus = pl.min_horizontal(pl.col("server_cpus").list.len().cast(pl.Float64), quota / period)
    given_cpus = given.trials.select(*TRIAL, cpus=cpus)
    # In one division of columns: by a constant, one row and many differ in the last bit.
    ratio = pl.col("used_ns") / (pl.col("took_ns") * pl.col("cpus"))
    known = used.filter(pl.col("took_ns") > 0).join(given_cpus, on=TRIAL, maintain_order="left")
    return known.select(*KEY, server_cpu_ratio=ratio)


def _on_time(given: Evidence) -> pl.DataFrame:
    """Return KEY and `on_time_ratio`."""
    time, due = _ANSWERED[given.client]
    answered = (
        given.times.lazy()
        .filter(pl.col("quantity") == time, pl.col("time_us") <= ON_TIME_US)
        .group_by(KEY, maintain_order=True)
        .agg(pl.col("count").sum())
        .collect()
    )
    whole = given.points.filter(pl.col("report") == "whole", pl.col(due) > 0)
    return whole.join(answered, on=KEY, how="left", maintain_order="left").select(
        *KEY, on_time_ratio=pl.col("count").fill_null(0) / pl.col(due)
    )


def _carried_rps(points: pl.DataFrame) -> int | None:
    """Return the highest rate that the null server answered on time; None if it has no point.

    Of its variants the best counts: one with a short listen queue shows its own limit.
    """
    of_null = points.filter(pl.col("server").is_in(CEILINGS), pl.col("on_time_ratio").is_not_null())
    if of_null.is_empty():
        return None
    ratios = of_null.group_by("variant", RATE, maintain_order=True).agg(
        pl.col("on_time_ratio").median()
    )
    return ratios.filter(pl.col("on_time_ratio") >= ON_TIME_RATIO)[RATE].max() or 0


def _limit(points: pl.DataFrame, carried_rps: int | None) -> pl.Expr:
    """Return `limit`; but for the client's own report, it is one for all trials of a variant.

    What differs between trials would choose those of them that are shown by their results.
    """
    variant = ["server", "variant", RATE]
    on_time = pl.col("on_time_ratio").median().over(variant) >= ON_TIME_RATIO
    used_up = pl.col("server_cpu_ratio").median().over(variant) >= USED_UP
    ended = pl.col("server_state") != "ran"
    shown = ended.any().over(variant) | used_up | _overflowed(points, variant)
    if carried_rps is not None:
        shown |= pl.col(RATE) <= carried_rps
    return (
        pl.when("client_limited")
        .then(pl.lit(CLIENT))
        .when(pl.col(RATE) == 0)
        .then(pl.lit(SERVER))
        .when(on_time.fill_null(False))
        .then(pl.lit(NONE))
        .when(shown.fill_null(False))
        .then(pl.lit(SERVER))
        .otherwise(pl.lit(None if carried_rps is None else TESTBED))
    )


def _overflowed(points: pl.DataFrame, variant: list[str]) -> pl.Expr:
    """Return whether the listen queue overflowed although connections were opened on time."""
    if "connect_burst_connections" not in points.columns:
        return pl.lit(False)
    late_us = pl.col("connect_burst_connections") * 1e6 / pl.col(RATE)
    share = pl.col("server_listen_overflows") / pl.col("connections")
    overflowed = share.median().over(variant) >= OVERFLOWED
    return overflowed & (late_us.median().over(variant) <= LATE_OPENING_US)


@dataclass(frozen=True)
class Others:
    """Shares of the CPU time at an offered rate: what the hypervisor took, and what others used.

    Others are what the machine did beyond the server and the load generators.
    """

    rate_rps: int
    stolen: float
    others: float


def others(samples: pl.DataFrame, cpus: int) -> list[Others]:
    """Return the shares at each offered rate, of samples of one machine with so many CPUs.

    A counter that starts again counts from there.
    """
    grown = [pl.col(*TAKEN, *OURS).drop_nulls().diff().clip(lower_bound=0).sum()]
    span_us = pl.col("time_us").max() - pl.col("time_us").min()
    used = (
        samples.drop_nulls("offered_rate_rps")
        .group_by("offered_rate_rps", maintain_order=True)
        .agg(*grown, span_us=span_us)
        .with_columns(total_us=pl.sum_horizontal(TAKEN))
        .filter((pl.col("total_us") > 0) & (pl.col("span_us") > 0))
    )
    known = pl.sum_horizontal(
        *(pl.col(f"cpu_{mode}_us") for mode in (*IDLE, "steal")), *(pl.col(c) / 1000 for c in OURS)
    )
    columns = used.select(
        "offered_rate_rps",
        pl.col("cpu_steal_us") / pl.col("total_us"),
        others=(pl.col("total_us") - known) / (pl.col("span_us") * cpus),
    )
    return [Others(*row) for row in columns.rows()]


def by_testbed(points: pl.DataFrame) -> pl.Expr:
    """Return which points show the testbed's limit; none of tables that were not judged."""
    return pl.col("limit").eq_missing(TESTBED) if "limit" in points.columns else pl.lit(False)


def any_by_testbed(points: pl.DataFrame) -> bool:
    """Return whether some point shows the testbed's limit."""
    return "limit" in points.columns and (points["limit"] == TESTBED).any()


def beyond_testbed(points: pl.DataFrame) -> pl.Expr:
    """Return which points are at a rate at which their variant shows the testbed's limit.

    One of its trials may show the client's there.
    """
    if "limit" not in points.columns:
        return pl.lit(False)
    return by_testbed(points).any().over("server", "variant", RATE)


def by_harness(points: pl.DataFrame) -> pl.Expr:
    """Return which points show the limit of the load generator or of the testbed."""
    return pl.col("client_limited") | by_testbed(points)


HOLLOW = "Hollow: the testbed's limit, not the server's."
"""For the captions of figures that show such points."""
