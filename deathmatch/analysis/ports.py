"""How a client opens connections once its ports are taken by closed ones (testbed `time-wait`).

In: samples of the kernel's counters. Out: a row for each trial.
"""

import polars as pl

# Long enough for a median, and over before the first ports are free again, a minute after the
# first connection was closed.
SLOW_US = 10_000_000


def slowed(samples: pl.DataFrame, due_rps: float) -> pl.DataFrame:
    """Return when the client, at its pace by then, first opened fewer than half of what was due.

    A row for each trial. Columns: n; since_us, from the first sample of the load; client_time_wait,
    its ports that rest then; opened_rps, the median of its samples' rates in the SLOW_US from then
    on. In a trial in which it kept its pace, this is the end of the load.
    """
    offering = samples.filter(pl.col("offered_rate_rps").is_not_null()).sort("n", "time_us")
    steps = offering.with_columns(
        since_us=pl.col("time_us") - pl.col("time_us").min().over("n"),
        opened_rps=1e6
        * pl.col("client_active_opens").diff().over("n")
        / pl.col("time_us").diff().over("n"),
    )
    keeps = pl.col("opened_rps") >= due_rps / 2
    slow = steps.filter(keeps.cum_max().over("n"), ~keeps)
    return (
        slow.filter(pl.col("since_us") <= pl.col("since_us").min().over("n") + SLOW_US)
        .group_by("n", maintain_order=True)
        .agg(pl.first("since_us", "client_time_wait"), pl.median("opened_rps"))
    )
