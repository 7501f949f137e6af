"""The limit that a point shows: the server's, the client's, the testbed's, or that of other load.

No load generator reports the testbed's limit. The null server measures it: it answers at once, so
that a rate at which its replies are late is too high for every server.
"""

import polars as pl

from deathmatch.agent.kernel import IDLE
from deathmatch.data.kernel_samples import RUN_DELAYS
from deathmatch.data.laws.law import KEY, TRIAL, Evidence
from deathmatch.quantities.quantity import RATE

ON_TIME_US = 100_000
"""A reply is on time within 100 ms of its intended send: later a user notices (Nielsen 1993).

For connections, the time counts from the opening, which the client may delay by up to PAUSE_US."""
ON_TIME_RATIO = 0.99
USED_UP = 0.9
"""A server that uses this share of its CPU time, or more, is limited by its CPU."""
WAITED = 1 - USED_UP
"""A server is limited by others that take this share of its CPU time, or more, while it waits."""
CLIENT_WAITED = 0.25
"""A client is the limit if others take this share of its CPUs, or it waits so long for a CPU.

It fits `load.httperf.CPU_SHARE_PERCENT`."""
PAUSE_US = ON_TIME_US // 2
"""A client that paused for longer is the limit: it sent or read late."""
OVERFLOWED = 0.01
"""The listen queue is the limit if this share of connections, or more, overflows it."""
LATE_OPENING_US = 2_000
"""Connections that are opened later than this count as a burst that the client caused."""

NONE, SERVER, TESTBED, CLIENT = "none", "server", "testbed", "client"
OTHER, UNKNOWN = "other load", "unknown"
LIMITS = (NONE, SERVER, TESTBED, CLIENT, OTHER, UNKNOWN)
SHARES = ("server_wait_ratio", "client_wait_ratio")
COLUMNS = {
    **dict.fromkeys(("server_cpu_ratio", *SHARES, "on_time_ratio"), pl.Float64),
    "limit": pl.String,
}
"""The columns that `marked` adds to points.

`limit` is the first that applies: "client", by the load generator's own report, a pause or its wait
for a CPU; "other load", if the server waited for CPUs that others used; "none", if replies were on
time; "server", if its CPU, its listen queue or its end was the limit, or the null server answered
that rate on time, and at every higher rate; "testbed", if the null server was late too; "unknown",
if the null server was not measured, or null, if the wait is unknown.

From samples while load was offered: `server_cpu_ratio` is the CPU time that the server used over
that available, `server_wait_ratio` the share that others used while the server's threads waited,
`client_wait_ratio` the share of the client's CPUs that others used, or of the time that it waited.
`on_time_ratio` is the share of due connections, or messages, answered within ON_TIME_US.
"""

CEILINGS = ("null", "ws-null")
# By load generator: the histogram of the times that must be in time, and the column of those due.
_ANSWERED = {
    "httperf": ("connection_time", "connections"),
    "roundtrip": ("latency", "requests"),
    "wsload": ("latency", "messages_due"),
}
SAMPLE_US = 60_000
"""The last sample of a point is taken within this time after its last send."""
OURS = ["server_cpu_ns", "client_cpu_ns"]
CLIENT_CPU = ("client_cpu_user_us", "client_cpu_system_us", "client_cpu_us")
"""The client's CPU time, by its own report: in two parts, or as one."""
_VARIANT = ["server", "variant"]
_AT = [*_VARIANT, RATE]


def marked(given: Evidence) -> pl.DataFrame:
    """Return the points with COLUMNS, in their order; `client_limited` where `limit` is CLIENT."""
    points = given.points.drop(COLUMNS, strict=False)
    if given.client is None:
        return points
    points = points.join(_cpu(given), on=KEY, how="left", maintain_order="left")
    points = points.join(_answered(given), on=KEY, how="left", maintain_order="left")
    pause_us = pl.max_horizontal("lag_us", *({"look_interval_max_us"} & {*points.columns}))
    waited = (pl.col("client_wait_ratio") >= CLIENT_WAITED).fill_null(False)
    points = points.with_columns(
        client_limited=pl.col("client_limited") | waited | (pause_us > PAUSE_US).fill_null(False),
        busy=(pl.col("server_wait_ratio") >= WAITED).fill_null(False),
    )
    sound = points.filter(~pl.col("client_limited"), ~pl.col("busy"))
    return points.with_columns(limit=_limit(points, *_ceiling(sound))).drop("lag_us", "busy")


def _cpu(given: Evidence) -> pl.DataFrame:
    """Return KEY, `server_cpu_ratio` and SHARES, from samples while the rate was offered."""
    # A client's samples end before it does: its own report has its whole CPU time.
    reported = [name for name in CLIENT_CPU if name in given.points.columns]
    reported_us = pl.sum_horizontal(pl.lit(0), *reported).alias("reported_us")
    offered = given.during.join(given.points.select(*KEY, "duration_us", reported_us), on=KEY)
    since_us = pl.col("time_us") - pl.col("time_us").min().over(KEY)
    idle, all_idle = ([f"{of}_{mode}_us" for mode in IDLE] for of in ("server_cpus", "cpu"))
    used = offered.filter(since_us <= pl.col("duration_us") + SAMPLE_US).group_by(
        KEY, maintain_order=True
    ).agg(
        used_ns=pl.col("server_cpu_ns").max() - pl.col("server_cpu_ns").min(),
        took_ns=1000 * (pl.col("time_us").max() - pl.col("time_us").min()),
        known=pl.col(RUN_DELAYS[0]).count() > 1, reported_us=pl.col("reported_us").first(),
        **{name: _grown(name) for name in (*idle, *all_idle, "client_cpu_ns", *RUN_DELAYS)},
    )  # fmt: skip
    own = pl.col("server_cpus").list.len()
    together = pl.col("server_cpus").list.set_intersection("client_cpus").list.len() > 0
    given_cpus = given.trials.select(
        *TRIAL, all=own,
        together=together, one=(pl.col("clients") == 1) & ~together,
        rest=(pl.col("cpus") - own).eq(pl.col("client_cpus").list.len()),
        of_client=pl.col("client_cpus").list.len(),
    )  # fmt: skip
    used = used.filter(pl.col("took_ns") > 0).join(given_cpus, on=TRIAL, maintain_order="left")
    ours_ns = pl.col("used_ns") + pl.when("together").then("client_cpu_ns").otherwise(0)
    others_ns = pl.col("took_ns") * pl.col("all") - 1000 * pl.sum_horizontal(idle) - ours_ns
    waited_ns = pl.min_horizontal(others_ns, RUN_DELAYS[0]).clip(lower_bound=0)
    # If there are no other CPUs, idle time that is not of the server's CPUs is of the client's.
    had_ns = pl.col("took_ns") * pl.col("of_client")
    rest_us = pl.sum_horizontal(all_idle) - pl.sum_horizontal(idle)
    client_ns = pl.max_horizontal("client_cpu_ns", 1000 * pl.col("reported_us"))
    lost = pl.when("rest").then(1 - (1000 * rest_us + client_ns) / had_ns)
    # Division by a column: by a constant, the last bit would depend on the number of rows.
    return used.select(
        *KEY,
        server_cpu_ratio=pl.col("used_ns") / (pl.col("took_ns") * pl.col("all")),
        server_wait_ratio=pl.when("known").then(waited_ns / (pl.col("took_ns") * pl.col("all"))),
        client_wait_ratio=pl.when("known", "one").then(
            pl.max_horizontal(lost, pl.col(RUN_DELAYS[1]) / pl.col("took_ns"))
        ),
    )


def _grown(name: str) -> pl.Expr:
    """Return the growth of a counter that starts again when a counted process ends."""
    return pl.col(name).drop_nulls().diff().clip(lower_bound=0).sum()


def _answered(given: Evidence) -> pl.DataFrame:
    """Return KEY, `on_time_ratio`, and the client's longest own delay, `lag_us`.

    httperf does not report the delay.
    """
    time, due = _ANSWERED[given.client]
    quantity, time_us = pl.col("quantity"), pl.col("time_us")
    found = given.times.lazy().group_by(KEY, maintain_order=True).agg(
        pl.col("count").filter(quantity == time, time_us <= ON_TIME_US).sum(),
        lag_us=time_us.filter(quantity == "send_lag").max(),
    ).collect()  # fmt: skip
    whole = given.points.filter(pl.col("report") == "whole", pl.col(due) > 0)
    return whole.join(found, on=KEY, how="left", maintain_order="left").select(
        *KEY, "lag_us", on_time_ratio=pl.col("count").fill_null(0) / pl.col(due)
    )


def _ceiling(sound: pl.DataFrame) -> tuple[int, int | None]:
    """Return the highest rate that the null server answered on time, and the next higher one.

    They are 0 and None if there is none. The null server's best variant counts, as one with a short
    listen queue shows its own limit.
    """
    known = sound.filter(pl.col("server").is_in(CEILINGS), pl.col("on_time_ratio").is_not_null())
    ratio = pl.col("on_time_ratio").median().over("variant", RATE).max().over(RATE)
    rates = known.select(RATE, on_time=ratio >= ON_TIME_RATIO)
    carried_rps = rates.filter("on_time")[RATE].max() or 0
    return carried_rps, rates.filter(pl.col(RATE) > carried_rps)[RATE].min()


def _limit(points: pl.DataFrame, carried_rps: int, late_rps: int | None) -> pl.Expr:
    """Return `limit`: CLIENT and OTHER by trial, the others alike for all trials of a variant.

    Otherwise the results of trials would select the ones that are shown. Trials that were disturbed
    have no say.
    """
    on_time = _over_sound("on_time_ratio") >= ON_TIME_RATIO
    shown = (pl.col("server_state") != "ran").any().over(_AT) | _overflowed(points)
    shown |= _over_sound("server_cpu_ratio") >= USED_UP
    shown |= pl.col(RATE) <= pl.lit(carried_rps)
    late = ~on_time & shown & (pl.col(RATE) > 0)
    lower = late.fill_null(False).cast(pl.Int8).cum_max().over(_VARIANT, order_by=RATE) == 1
    return (
        pl.when("client_limited")
        .then(pl.lit(CLIENT))
        .when("busy")
        .then(pl.lit(OTHER))
        .when(pl.col(RATE) == 0)
        .then(pl.lit(SERVER))
        .when(on_time.fill_null(False))
        .then(pl.lit(NONE))
        .when(shown.fill_null(False) | lower)
        .then(pl.lit(SERVER))
        .when((pl.col(RATE) >= pl.lit(late_rps)).fill_null(False))
        .then(pl.lit(TESTBED))
        .when(pl.col("server_wait_ratio").is_not_null())
        .then(pl.lit(UNKNOWN))
    )


def _over_sound(value: str | pl.Expr) -> pl.Expr:
    """Return the median over the undisturbed trials of a variant."""
    return pl.when(~pl.col("client_limited") & ~pl.col("busy")).then(value).median().over(_AT)


def _overflowed(points: pl.DataFrame) -> pl.Expr:
    """Return whether the listen queue overflowed although connections were opened on time."""
    if "connect_burst_connections" not in points.columns:
        return pl.lit(False)
    late_us = pl.col("connect_burst_connections") * 1e6 / pl.col(RATE)
    share = pl.col("server_listen_overflows") / pl.col("connections")
    overflowed = _over_sound(share) >= OVERFLOWED
    return overflowed & (_over_sound(late_us) <= LATE_OPENING_US)


def others(samples: pl.DataFrame, cpus: int) -> pl.DataFrame:
    """Return the shares of one machine's CPU time that others used, at each offered rate.

    Columns: the rate; `stolen` by the hypervisor; `others`: the time that was neither idle, which
    the kernel measures exactly, nor used by the server and the load generators.
    """
    total_us = cpus * (pl.col("time_us").max() - pl.col("time_us").min())
    names = [f"cpu_{mode}_us" for mode in (*IDLE, "steal")]
    used = (
        samples.drop_nulls(RATE)
        .group_by(RATE, maintain_order=True)
        .agg(*map(_grown, (*names, *OURS)), total_us=total_us)
        .filter(pl.col("total_us") > 0)
    )
    known_us = pl.sum_horizontal(*names, *(pl.col(name) / 1000 for name in OURS))
    return used.select(
        RATE,
        stolen=pl.col("cpu_steal_us") / pl.col("total_us"),
        others=1 - known_us / pl.col("total_us"),
    )


def by_testbed(points: pl.DataFrame) -> pl.Expr:
    """Return which points show the limit of the testbed, of other load, or an unknown one."""
    return shows(points, TESTBED, UNKNOWN, OTHER)


def shows(points: pl.DataFrame, *named: str) -> pl.Expr:
    """Return which points show one of these LIMITS; none if the table has no `limit`."""
    if "limit" not in points.columns:
        return pl.lit(False)
    return pl.col("limit").is_in(named).fill_null(False)


def beyond_testbed(points: pl.DataFrame) -> pl.Expr:
    """Return the points at rates at which a trial of the variant shows the testbed's limit.

    Another of its trials may show the client's there, or that of other load.
    """
    if "limit" not in points.columns:
        return pl.lit(False)
    return shows(points, TESTBED, UNKNOWN).any().over(_AT)


def by_harness(points: pl.DataFrame) -> pl.Expr:
    """Return which points show the load generator's limit, or are `by_testbed`."""
    return pl.col("client_limited") | by_testbed(points)


HOLLOW = "Hollow: the testbed's limit, not the server's."
"""For the captions of figures that show such points."""
