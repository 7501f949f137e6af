"""What server and client got of a machine's CPUs while a rate was offered, of a trial's samples."""

import polars as pl

from deathmatch.data.limits import SAMPLE_US
from deathmatch.data.strict.cpu import IDLE, TAKEN

SHARES = ("span_us", "server_us", "client_us", "idle_us", "total_us")
START_US = 500_000
"""How long after a rate's first sample its load may begin.

In a closed loop roundtrip offers nothing for 0.4 s: it waits twice for its `--settle` of 0.2 s to
learn how long a reply is.
"""


def shares(samples: pl.DataFrame, rate_rps: int, duration_us: float) -> dict[str, int | None]:
    """Return SHARES while a rate was offered, from START_US on; {} without two samples of that.

    CPU time of the server, of the load generators, of nobody and of all CPUs of the machine, in
    `span_us` of time. One is None where nobody counted it.
    """
    since_us = pl.col("time_us") - pl.col("time_us").min()
    during = samples.filter(pl.col("offered_rate_rps") == rate_rps).filter(
        since_us.is_between(START_US, duration_us + SAMPLE_US)
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
