"""What server and client got of a machine's CPUs while a rate was offered, of a trial's samples."""

import polars as pl

from deathmatch.data.limits import SAMPLE_US
from deathmatch.data.strict.cpu import IDLE, TAKEN

SHARES = ("span_us", "server_us", "client_us", "idle_us", "total_us")


def shares(samples: pl.DataFrame, rate_rps: int, duration_us: float) -> dict[str, int | None]:
    """Return SHARES while a rate was offered; {} if there are not two samples of it.

    CPU time of the server, of the load generators, of nobody and of all CPUs of the machine, in
    `span_us` of time. One is None where nobody counted it.
    """
    since_us = pl.col("time_us") - pl.col("time_us").min()
    during = samples.filter(pl.col("offered_rate_rps") == rate_rps).filter(
        since_us <= duration_us + SAMPLE_US
    )
    if len(during) < 2:
        return {}
    # A load generator counts from 0, and is gone at the end.
    counted = pl.col("time_us", "server_cpu_ns", "client_cpu_ns", *TAKEN)
    grown = during.select((counted - counted.first()).max()).row(0, named=True)
    modes = [grown[name] for name in TAKEN]
    return {
        "span_us": grown["time_us"],
        "server_us": _us(grown["server_cpu_ns"]),
        "client_us": _us(grown["client_cpu_ns"]),
        "idle_us": sum(grown[f"cpu_{mode}_us"] or 0 for mode in IDLE),
        "total_us": sum(mode or 0 for mode in modes),
    }


def _us(ns: int | None) -> int | None:
    return None if ns is None else ns // 1000
