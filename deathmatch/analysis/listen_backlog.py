"""Costs of a listen backlog: the experiment backlog, and the curves of Walkin 2009.

In: points, times and samples of the experiment, and the published values. Out: frames for figures
and tables, and ratios between backlogs.
"""

from collections.abc import Sequence

import polars as pl

from deathmatch.analysis import stats
from deathmatch.analysis.reply_rates import RATE, REPLY
from deathmatch.analysis.stats import Interval
from deathmatch.quantities.definitions import CONNECTION_TIME, FAILED_CONNECTIONS

LOSSES = ["overflows_per_connection", "retries_per_connection", "failed_percent", "median_ms"]
QUEUE = ["accept_queue_limit", "accept_queue_connections"]
# Twelve a decade from 0.1 ms to 10 s.
TIMES_US = [round(100 * 10 ** (step / 12)) for step in range(12 * 5)]


def published_curve(walkin: pl.DataFrame) -> pl.DataFrame:
    """Return the one curve that the post has as numbers: offered rate, value, series."""
    curve = walkin.filter(system="Misultin", quantity="reply_rate", statistic="mean")
    return curve.select(RATE, "value", series=pl.lit("Misultin, backlog 30"))


def against_post(overload: pl.DataFrame, walkin: pl.DataFrame) -> pl.DataFrame:
    """Return the reply rate in an overload by backlog on one scheduler, ours and the post's.

    `overload` are probes with REPLY and their backlog. Columns: backlog, `variant` in words,
    overload_rps (the median), trials, low, high and published_rps. Rows that only one of the two
    has are included.
    """
    theirs = (
        walkin.filter(
            pl.col("place").str.contains("backlog graphs"), system="Yucan", statistic="plateau",
            schedulers="one",
        )
        .group_by("backlog", maintain_order=True)
        .agg(published_rps=pl.col("value").max())
    )  # fmt: skip
    return (
        stats.summarise(overload, ["backlog"], REPLY)
        .join(theirs, on="backlog", how="full", coalesce=True)
        .sort("backlog")
        .with_columns(variant=pl.format("backlog {}", "backlog"), overload_rps=pl.col("median"))
    )


def backlog_ratio(points: pl.DataFrame, above: int, below: int) -> Interval:
    """Return the interval of the reply rate's ratio between two backlogs, paired by round."""
    return stats.ratio(points, pl.col("backlog") == above, pl.col("backlog") == below, REPLY)


def unanswered(points: pl.DataFrame) -> pl.DataFrame:
    """Return the connections without an answer, by cap, backlog, rate and length of a point.

    `points` are those that count, of one server. Columns: somaxconn, backlog, offered_rate_rps,
    duration_s, trials, `least`, `median` and `most` of the trials' shares of connections without an
    answer in percent, and the median of reply_rate_rps.
    """
    key = ["somaxconn", "backlog", RATE, "duration_s"]
    return (
        points.with_columns(
            duration_s=pl.col("duration_us") / 1e6, failed=FAILED_CONNECTIONS.of_trial.of_point()
        )
        .group_by(key, maintain_order=True)
        .agg(
            trials=pl.len().cast(pl.Int64),
            least=pl.min("failed"),
            median=pl.median("failed"),
            most=pl.max("failed"),
            reply_rate_rps=pl.median(REPLY),
        )
        .sort("duration_s", RATE, "backlog", descending=[True, False, False])
    )


def slower_shares(
    points: pl.DataFrame, times: pl.DataFrame, times_us: Sequence[int] = TIMES_US
) -> pl.DataFrame:
    """Return how many of 100 connections took longer than a time, or had no answer, by backlog.

    All trials together. Columns: backlog, time_ms, slower_percent; without times that no connection
    exceeded.
    """
    attempted = points.group_by("backlog", maintain_order=True).agg(pl.col("connections").sum())
    limits = pl.DataFrame({"limit_us": times_us}, schema={"limit_us": pl.Int64})
    within = pl.col("count").filter(pl.col("time_us") <= pl.col("limit_us")).sum()
    return (
        times.group_by("backlog", "time_us", maintain_order=True)
        .agg(pl.col("count").sum())
        .join(limits, how="cross")
        .group_by("backlog", "limit_us", maintain_order=True)
        .agg(within=within)
        .join(attempted, on="backlog")
        .filter(pl.col("within") < pl.col("connections"))
        .select(
            "backlog",
            time_ms=pl.col("limit_us") / 1000,
            slower_percent=100 * (1 - pl.col("within") / pl.col("connections")),
        )
        .sort("backlog", "time_ms")
    )


def losses(points: pl.DataFrame, samples: pl.DataFrame) -> pl.DataFrame:
    """Return the losses by backlog: trials, medians of LOSSES, and the maxima of QUEUE."""
    connections = pl.col("connections")
    with_losses = points.with_columns(
        overflows_per_connection=pl.col("server_listen_overflows") / connections,
        retries_per_connection=pl.col("client_syn_retransmissions") / connections,
        failed_percent=FAILED_CONNECTIONS.of_trial.of_point(),
        median_ms=CONNECTION_TIME.of_trial.of_point(),
    )
    medians = with_losses.group_by("backlog", maintain_order=True).agg(
        pl.len().alias("trials"), pl.col(LOSSES).median()
    )
    longest = samples.group_by("backlog", maintain_order=True).agg(pl.col(QUEUE).max())
    return medians.join(longest, on="backlog", how="left").sort("backlog")
