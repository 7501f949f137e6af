"""What a wait costs by the number of idle descriptors, from data/descriptors/<name>.json.

In: the record that `deathmatch descriptors` wrote. Out: nanoseconds that one idle descriptor adds
to a wait, and microseconds a wait, by mechanism and state, with intervals over repetitions.
"""

import polars as pl

from deathmatch.analysis import stats
from deathmatch.analysis.committed import Record
from deathmatch.analysis.interval import Interval
from deathmatch.instruments.waits import HOT, MECHANISMS, STATES

KEY = ["mechanism", "state", "idle"]
SCHEMA = {
    "mechanism": pl.Enum(MECHANISMS), "state": pl.Enum(STATES), "idle": pl.Int64,
    "repetition": pl.Int64, "waits": pl.Int64, "wait_ns": pl.Int64,
}  # fmt: skip
# What fewer add is less than what one wait differs from another by.
LEAST_IDLE = 64


def waits(record: Record) -> pl.DataFrame:
    """Return a row for each reading: SCHEMA, `wait_us`, and `each_ns`.

    `each_ns` is what one idle descriptor adds: the wait less that over none of the same repetition,
    over the descriptors; null over none.
    """
    frame = pl.DataFrame(record.readings, schema=SCHEMA)
    life = ["mechanism", "state", "repetition"]
    none = frame.filter(idle=0).select(*life, none_ns="wait_ns")
    idle = pl.when(pl.col("idle") > 0).then("idle")
    return frame.join(none, on=life, how="left").select(
        *SCHEMA, wait_us=pl.col("wait_ns") / 1000,
        each_ns=(pl.col("wait_ns") - pl.col("none_ns")) / idle,
    )  # fmt: skip


def curves(readings: pl.DataFrame, mechanism: str) -> pl.DataFrame:
    """Return KEY and INTERVAL of `each_ns`, of one mechanism and LEAST_IDLE descriptors or more."""
    mine = readings.filter(pl.col("idle") >= LEAST_IDLE, mechanism=mechanism)
    return stats.summarise(mine, KEY, "each_ns").sort(KEY)


def table(readings: pl.DataFrame, levels: int = 4) -> pl.DataFrame:
    """Return a row for each mechanism and state, and a column for each of a few numbers of idle.

    Cells are the median of `wait_us`; the numbers are none, the most, and what halves the way
    between in steps of the record.
    """
    known = readings["idle"].unique().sort().to_list()
    steps = [round(place * (len(known) - 1) / (levels - 1)) for place in range(levels)]
    chosen = [known[step] for step in dict.fromkeys(steps)]
    few = readings.filter(pl.col("idle").is_in(chosen))
    medians = few.group_by(KEY, maintain_order=True).agg(pl.col("wait_us").median())
    wide = medians.sort("idle").pivot("idle", index=["mechanism", "state"], values="wait_us")
    return wide.sort("mechanism", "state")


def growth(
    readings: pl.DataFrame, mechanism: str, few: int, many: int, state: str = HOT
) -> Interval:
    """Return the interval of what a descriptor costs among many over what it costs among few."""
    mine = readings.filter(mechanism=mechanism, state=state)
    return stats.ratio(
        mine, pl.col("idle") == many, pl.col("idle") == few, "each_ns", "repetition"
    )  # fmt: skip


def between(readings: pl.DataFrame, state: str, idle: int) -> Interval:
    """Return the interval of what a wait of select costs over what one of poll does."""
    mine = readings.filter(state=state, idle=idle)
    return stats.ratio(
        mine, pl.col("mechanism") == "select", pl.col("mechanism") == "poll", "wait_us",
        "repetition",
    )  # fmt: skip


def at(readings: pl.DataFrame, mechanism: str, state: str, idle: int) -> Interval:
    """Return the interval of `each_ns` of one curve at one number of idle descriptors."""
    per_descriptor_ns = readings.filter(mechanism=mechanism, state=state, idle=idle)["each_ns"]
    return stats.interval(per_descriptor_ns.to_list())
