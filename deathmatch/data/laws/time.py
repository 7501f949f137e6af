"""Times: in order, no longer than the run, no more CPU time than there is; the run was steady."""

import polars as pl

from deathmatch.agent.kernel import IDLE
from deathmatch.data.laws.law import KEY, RATE, TRIAL, Evidence, judged, law, nothing
from deathmatch.data.steadiness import LEAST_CHANGE, PLATEAU

# The prefixes of the columns with quantiles in wsload's report.
_QUANTITIES = ("handshake_time", "message_latency", "service_time", "connection_time")
_ORDER = ("p50", "p95", "p99", "p999", "max")
# httperf prints times in 0.1 ms, and its median is that of a bin of 1 ms.
PRINTED_US = 1_100
# A sample's counters are read one after another, which takes tens of milliseconds on a busy
# machine; a client's times begin with its process.
READING_US = 100_000


@law("LAW-CLOCK", "reject", "clock_gettime(2), CLOCK_MONOTONIC", bound="a microsecond")
def clock(evidence: Evidence) -> pl.DataFrame:
    """Samples are in the order of their times."""
    step_us = pl.col("time_us").diff().over(TRIAL)
    ordered = evidence.samples.with_columns(step_us=step_us).drop_nulls(RATE)
    return judged(ordered, pl.col("step_us"), 1, None)


@law("LAW-QUANTILES", "reject", "the definition", bound="httperf's median is of bins of 1 ms")
def quantiles(evidence: Evidence) -> pl.DataFrame:
    """A higher quantile is no shorter, none is beyond the extremes, nor is the mean."""
    points = evidence.reported
    if evidence.client == "httperf":
        low, mean, high, median = (
            pl.col(f"connection_time_{name}_us") for name in ("min", "avg", "max", "median")
        )
        pairs = [(low, mean), (mean, high), (low, median + PRINTED_US), (median, high + PRINTED_US)]
    elif evidence.client == "wsload":
        pairs = [
            (pl.col(f"{begin}_{low}_us"), pl.col(f"{begin}_{high}_us"))
            for begin in _QUANTITIES
            for place, low in enumerate(_ORDER)
            for high in _ORDER[place + 1 :]
        ]
    else:
        pairs = [(pl.col("send_lag_p95_us"), pl.col("send_lag_p99_us"))]
    # A quantile is null if that share never ended: it is in no pair.
    inverted = [(low > high).fill_null(False).cast(pl.Int64) for low, high in pairs]
    return judged(points, pl.sum_horizontal(inverted), None, 0)


@law(
    "LAW-LONGEST", "reject", "the definition",
    bound="the digits printed; wsload waits for its last messages",
)  # fmt: skip
def longest(evidence: Evidence) -> pl.DataFrame:
    """Nothing took longer than the run in which it was timed."""
    if evidence.client == "httperf":
        longest = pl.col("connection_time_max_us")
        return judged(
            evidence.reported, longest, None, pl.col("test_duration_us") + PRINTED_US
        )  # fmt: skip
    if evidence.client == "roundtrip":
        points = evidence.with_counted("service_time")
        return judged(points, pl.col("longest_us"), None, 1.004 * pl.col("test_duration_us"))
    rest_us = 1e6 * (evidence.load["drain_s"] + evidence.load["interval_s"]) + READING_US
    longest = pl.col("message_latency_max_us")
    return judged(evidence.reported, longest, None, pl.col("duration_us") + rest_us)


def _timed(evidence: Evidence) -> pl.DataFrame:
    """Return the points with their trial's CPUs and `wall_us`, the time between end samples."""
    wall_us = pl.col("time_us").last() - pl.col("time_us").first()
    walls = evidence.during.group_by(KEY, maintain_order=True).agg(wall_us=wall_us)
    cpus = evidence.trials.select(*TRIAL, "cpus", "server_cpus")
    return evidence.points.join(cpus, on=TRIAL).join(walls, on=KEY)


@law(
    "LAW-CPU", "reject", "the definition",
    bound="0.1 s for each CPU: a sample's counters are read after one another",
)  # fmt: skip
def cpu(evidence: Evidence) -> pl.DataFrame:
    """A server's CPU time and its CPUs' idle time are no more than the time that passed.

    Linux measures idle time, but samples the other modes at the clock tick, which stops while the
    CPU is idle: they need not add up to the rest.
    """
    count = pl.coalesce(pl.col("server_cpus").list.len(), "cpus")
    idle_us = sum(pl.col(f"server_cpus_{mode}_us").fill_null(0) for mode in IDLE)
    most_us = count * (pl.col("wall_us") + READING_US)
    return judged(_timed(evidence), pl.col("server_cpu_ns") / 1000 + idle_us, None, most_us)


@law(
    "LAW-CLIENT-CPU", "reject", "the definition",
    bound="0.1 s for each: its times begin with its process",
)  # fmt: skip
def client_cpu(evidence: Evidence) -> pl.DataFrame:
    """A load generator's CPU time is no more than its threads had."""
    points, count = evidence.reported, pl.max_horizontal("clients", pl.lit(1))
    if evidence.client == "wsload":
        # It has several threads.
        count = count * pl.col("cpus")
        used_us = pl.col("client_cpu_us")
        lasted_us = pl.col("duration_us") + 1e6 * (
            evidence.load["drain_s"] + evidence.load["interval_s"]
        )
    else:
        used_us = pl.col("client_cpu_user_us") + pl.col("client_cpu_system_us")
        lasted_us = pl.col("test_duration_us")
    return judged(points, used_us, None, count * (lasted_us + READING_US))


@law(
    "LAW-STEADY", "warn", "Mann 1945; Kendall 1975; Hamed and Rao 1998; Pettitt 1979",
    bound="a change of 10 %, at 1 % of false alarms (Mann-Kendall with Hamed and Rao's "
    "correction, Pettitt), of ten intervals or more",
    # While a queue grows, times depend on the length of the run; counts do not.
    columns=("message_latency", "latency", "service_time", "response_time", "connection_time"),
)  # fmt: skip
def steady(evidence: Evidence) -> pl.DataFrame:
    """What is measured neither drifts nor jumps while all load is offered."""
    points = evidence.reported.drop_nulls("course")
    change = pl.when(pl.col("course") == PLATEAU).then(0.0).otherwise(pl.col("course_change"))
    return judged(points, change, -LEAST_CHANGE, LEAST_CHANGE)


@law("LAW-FAIR", "warn", "the definition", bound="three messages due on it, none echoed")
def fair(evidence: Evidence) -> pl.DataFrame:
    """No connection that stood to the end got nothing, where most messages were echoed."""
    if evidence.client != "wsload":
        return nothing(evidence)
    # If half of the messages are lost, some connections are expected to get nothing.
    served = evidence.reported.filter(2 * pl.col("replies") >= pl.col("messages_due"))
    return judged(served, pl.col("connections_starved"), None, 0)
