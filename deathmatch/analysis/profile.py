"""Where a request's CPU time goes in the kernel, from data/profile/<name>.json.

In: the record that `deathmatch profile` wrote. Out: microseconds of a reply's CPU time by phase,
with intervals over repetitions.
"""

import polars as pl

from deathmatch.analysis import stats
from deathmatch.analysis.provenance import Record
from deathmatch.analysis.stats import Interval
from deathmatch.instruments.call_chains import PHASES, WAIT
from deathmatch.quantities.definitions import CPU_PER_REPLY

KEY = ["mechanism", "idle", "rate_rps"]
_READ = {
    "mechanism": pl.String, "idle": pl.Int64, "rate_rps": pl.Int64, "repetition": pl.Int64,
    "replies": pl.Int64, "cpu_ns": pl.Int64,
}  # fmt: skip
SCHEMA = _READ | {"phase": pl.Enum(PHASES), "samples": pl.Int64, "cpu_us": pl.Float64}


def phases(record: Record) -> pl.DataFrame:
    """Return a row for each reading and phase: SCHEMA.

    `cpu_us` is a reply's CPU time in that phase: the server's, by the share of the samples.
    """
    rows = []
    for reading in record.readings:
        whole = sum(reading["phases"].values())
        for phase, samples in reading["phases"].items():
            spent = CPU_PER_REPLY.of_trial.value(reading["cpu_ns"], reading["replies"])
            cpu_us = spent * samples / whole if whole else None
            own = {name: reading[name] for name in _READ}
            rows.append(own | {"phase": phase, "samples": samples, "cpu_us": cpu_us})
    return pl.DataFrame(rows, schema=SCHEMA)


def bars(spent: pl.DataFrame) -> pl.DataFrame:
    """Return KEY, `phase` and INTERVAL of `cpu_us`, in the order of PHASES."""
    return stats.summarise(spent, [*KEY, "phase"], "cpu_us").sort(*KEY, "phase")


def whole(spent: pl.DataFrame, mechanism: str, idle: int, rate_rps: int) -> Interval:
    """Return the interval of a reply's CPU time in all phases, in microseconds."""
    mine = spent.filter(mechanism=mechanism, idle=idle, rate_rps=rate_rps)
    sums = mine.group_by("repetition", maintain_order=True).agg(pl.col("cpu_us").sum())
    return stats.interval(sums["cpu_us"].to_list())


def looking(spent: pl.DataFrame, mechanism: str, idle: int, rate_rps: int) -> Interval:
    """Return the interval of the share of the CPU time that looking at descriptors takes, in %."""
    mine = spent.filter(mechanism=mechanism, idle=idle, rate_rps=rate_rps)
    shares = mine.group_by("repetition", maintain_order=True).agg(
        percent=100 * pl.col("samples").filter(pl.col("phase") == WAIT).sum()
        / pl.col("samples").sum()
    )  # fmt: skip
    return stats.interval(shares["percent"].to_list())
