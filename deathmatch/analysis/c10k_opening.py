"""The opening of ten thousand WebSockets: its limits, its pace, and runs of another length.

In: the experiment's points, seconds and samples, as `deathmatch.analysis.c10k` has them. Out:
frames for tables.
"""

import polars as pl

from deathmatch.analysis import phrases, stats, views
from deathmatch.analysis.c10k import ASKED, ENVIRONMENT_TITLES, LATE, on_one_cpu
from deathmatch.analysis.reply_rates import RATE
from deathmatch.analysis.stats import Interval
from deathmatch.data.laws.law import KEY

# The first and the last fifth of a run are compared, as for the growth of the latency.
_FIFTH = 0.2
# An opening rate that falls below this share of the first: open connections keep it down.
_STARVED = 0.25
BUSY = 0.9
"""Below this share of one CPU, a starved server waits for something other than its CPU."""


def ceilings(points: pl.DataFrame, seconds: pl.DataFrame, samples: pl.DataFrame) -> pl.DataFrame:
    """Return the limits of each server that did not open every connection; medians over trials.

    Columns: label, environment, held; cpus, the CPUs that its processes used in the last fifth of a
    run; message_rate_rps, the answered messages a second of those due then; message_rate_cpu_rps,
    the same per CPU; opening_first_cps and opening_last_cps, connections begun a second in the
    first and the last fifth; starved: the last is a small part of the first. Trials without samples
    or a report do not count.
    """
    late = points.filter(ASKED, pl.sum_horizontal(LATE) > 0).select(
        *KEY, "label", "environment", "duration_us", held="outcome_completed"
    )
    begins = (1 - _FIFTH) * pl.col("duration_us")
    within = seconds.join(late.select(*KEY, "duration_us"), on=KEY).with_columns(
        at_us=1e6 * pl.col("since_start_s")
    )
    first, last = pl.col("at_us") < _FIFTH * pl.col("duration_us"), pl.col("at_us") >= begins
    part_s = _FIFTH * pl.col("duration_us").first() / 1e6
    begun = pl.col("count").filter
    opening = pl.col("quantity") == "handshake_time"
    answered = (pl.col("count") - pl.col("lost")).filter(pl.col("quantity") == "latency", last)
    rates = within.group_by(KEY, maintain_order=True).agg(
        message_rate_rps=answered.sum() / part_s,
        opening_first_cps=begun(opening, first).sum() / part_s,
        opening_last_cps=begun(opening, last).sum() / part_s,
    )
    offered = samples.drop_nulls(RATE).join(late.select(*KEY, "duration_us"), on=KEY)
    since_us = pl.col("time_us") - pl.col("time_us").min().over(KEY)
    used = (
        offered.filter((since_us >= begins) & (since_us <= pl.col("duration_us")))
        .group_by(KEY, maintain_order=True)
        .agg(
            cpus=(pl.col("server_cpu_ns").last() - pl.col("server_cpu_ns").first())
            / (pl.col("time_us").last() - pl.col("time_us").first()) / 1e3
        )
    )  # fmt: skip
    trials = (
        late.join(rates, on=KEY)
        .join(used.filter(pl.col("cpus").is_finite(), pl.col("cpus") > 0), on=KEY)
        .with_columns(message_rate_cpu_rps=pl.col("message_rate_rps") / pl.col("cpus"))
    )
    names = ["held", "cpus", "message_rate_rps", "message_rate_cpu_rps", "opening_first_cps",
             "opening_last_cps"]  # fmt: skip
    medians = trials.group_by("label", "environment", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("trials"), pl.col(names).median()
    )
    starved = pl.col("opening_last_cps") < _STARVED * pl.col("opening_first_cps")
    return medians.with_columns(starved=starved).sort(
        "environment", "label", descending=[True, False]
    )


def ceilings_table(limits: pl.DataFrame) -> pl.DataFrame:
    """Return the printed table of `ceilings`."""
    whole = ["held", "message_rate_rps", "message_rate_cpu_rps", "opening_first_cps",
             "opening_last_cps"]  # fmt: skip
    return limits.with_columns(
        pl.col("environment").replace(ENVIRONMENT_TITLES),
        pl.col(whole).round().cast(pl.Int64),
    ).drop("starved")


def side_by_side(points: pl.DataFrame) -> pl.DataFrame:
    """Return the trials of servers that ran at more than one level of `opening` or of `run`.

    Columns: label, environment, trials, and medians: opening_max (most handshakes at a time), held,
    connection_timeouts, opening_rate_cps, handshake_p50_ms, handshake_p99_ms, latency_p50_ms,
    latency_p99_ms, growth.
    """
    asked = points.filter(ASKED)
    same = ["server", "schedulers", "environment"]
    several = pl.struct("opening", "run").n_unique().over(same) > 1
    ms = {
        f"{name}_{q}_ms": pl.col(f"{column}_{q}_us").cast(pl.Float64).median() / 1e3
        for name, column in (("handshake", "handshake_time"), ("latency", "message_latency"))
        for q in ("p50", "p99")
    }
    return (
        asked.filter(several)
        .group_by("label", pl.col("environment").replace(ENVIRONMENT_TITLES), maintain_order=True)
        .agg(
            pl.len().cast(pl.Int64).alias("trials"),
            opening_max=pl.col("connections_opening_max").median(),
            held=pl.col("outcome_completed").median(),
            connection_timeouts=pl.col("connection_timeouts").median(),
            opening_rate_cps=pl.col("opening_rate_cps").median(),
            **ms,
            growth=pl.col("message_latency_growth").median(),
        )
        .sort("environment", "label", descending=[True, False])
    )


def timed_out_at_pace(points: pl.DataFrame) -> pl.DataFrame:
    """Return how many connections timed out in trials at the pace of the post's client, on one CPU.

    Columns: label, and INTERVAL of `connection_timeouts` over trials, the highest median first.
    """
    at_pace = on_one_cpu(views.subjects(points)).filter(opening=0)
    timed_out = stats.summarise(at_pace, ["label"], "connection_timeouts")
    return timed_out.sort("median", descending=True)


def most_timed_out(timed_out: pl.DataFrame) -> str:
    """Return which row of `timed_out_at_pace` has the most, and how many of the others have any."""
    if not len(timed_out):
        return f"connections that timed out: {phrases.NOT_MEASURED}"
    most, others = timed_out.row(0, named=True), timed_out[1:]
    lost = phrases.interval(Interval.from_row(most))
    with_any = phrases.part((others["high"] > 0).sum(), len(others))
    return f"{most['label']} lost {lost} of ten thousand, and {with_any} others lost any"
