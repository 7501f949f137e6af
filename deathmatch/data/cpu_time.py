"""Who used a machine's CPUs while a rate was offered: the hypervisor, and what is not measured."""

from dataclasses import dataclass

import polars as pl

from deathmatch.agent.kernel import MODES

IDLE = ("idle", "iowait")
TAKEN = [f"cpu_{mode}_us" for mode in MODES]
OURS = ["server_cpu_ns", "client_cpu_ns"]


@dataclass(frozen=True)
class Others:
    """Shares of the CPU time at an offered rate: what the hypervisor took, and what others used.

    Others are what the machine did beyond the server and the load generators.
    """

    rate_rps: int
    stolen: float
    others: float


def of_others(samples: pl.DataFrame, cpus: int) -> list[Others]:
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
