"""Where a request's CPU time goes in the kernel, from data/profile/<name>.json.

In: the record that `deathmatch profile` wrote. Out: microseconds of a reply's CPU time by phase,
with intervals over repetitions, and the stacks of one reading as rectangles of a flame graph.
"""

from collections.abc import Iterator

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
# A function in a call chain: its depth, and its range among the reading's samples.
FLAME = {
    "function": pl.String, "depth": pl.Int64, "from_percent": pl.Float64, "to_percent": pl.Float64,
}  # fmt: skip


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


def flame(record: Record, mechanism: str, idle: int, rate_rps: int) -> pl.DataFrame:
    """Return the kernel's stacks of one point as rectangles: FLAME.

    Those of all repetitions together; a function that a chain of another order also has is another
    rectangle. What was not kept, less than a hundredth of a reading each, leaves a gap.
    """
    mine = [
        reading
        for reading in record.readings
        if [reading[name] for name in KEY] == [mechanism, idle, rate_rps]
    ]
    every = sum(sum(reading["phases"].values()) for reading in mine)
    counted: dict[tuple[str, ...], int] = {}
    for reading in mine:
        for stack, count in reading["stacks"]:
            counted[tuple(stack)] = counted.get(tuple(stack), 0) + count
    stacks = [(stack, 100 * count / every) for stack, count in sorted(counted.items())]
    return pl.DataFrame(list(_rectangles(stacks, 0, 0)), schema=FLAME, orient="row")


def _rectangles(
    stacks: list[tuple[tuple[str, ...], float]], depth: int, start: float
) -> Iterator[tuple[str, int, float, float]]:
    """Yield the rectangles of stacks that are alike up to `depth`, from `start` on."""
    names = dict.fromkeys(stack[depth] for stack, _ in stacks if len(stack) > depth)
    # Those that end here are the first: a shorter tuple sorts before a longer one.
    start += sum(share for stack, share in stacks if len(stack) == depth)
    for name in names:
        mine = [chain for chain in stacks if len(chain[0]) > depth and chain[0][depth] == name]
        end = start + sum(share for _, share in mine)
        yield name, depth, start, end
        yield from _rectangles(mine, depth + 1, start)
        start = end
