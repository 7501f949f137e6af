"""Quantities of trials: which points count, and at which rates variants are compared.

In: points of one variant or of several. Out: points that count, or one value for each trial.
"""

from collections.abc import Iterable
from functools import reduce

import polars as pl

from deathmatch.data import laws, limits
from deathmatch.quantities.quantity import RATE, TOP, Points, Quantity


def counted(points: pl.DataFrame, which: Points = Points.VALID) -> pl.DataFrame:
    """Return the points that count for a quantity with `points=which`; all of a store's."""
    if which in (Points.ALL, Points.TRIALS) or "client_limited" not in points.columns:
        return points
    steady = laws.is_steady(points) if which == Points.STEADY else True
    # Without a whole report only the server's end is known.
    reported = which == Points.ENDING or pl.col("report").ne_missing("truncated")
    return points.filter(steady, laws.is_upheld(points), ~limits.by_harness(points), reported)


def values(points: pl.DataFrame, quantity: Quantity, by: list[str]) -> pl.DataFrame:
    """Return the quantity of each trial: `by`, n, and a column with the quantity's name.

    `points` are those that count; trials without a value have no row, nor trials that lack the
    highest rate of a variant, TOP, where the quantity describes a whole sweep.
    """
    key = [*by, "n"]
    if quantity.points == Points.STEADY:
        points = laws.steady(points)
    if quantity.whole_sweep:
        # A sweep that the client cut short has not shown what it comes to.
        reached = pl.col(RATE).max().over(key) == pl.col(TOP).max().over(key)
        points = points.filter(reached | (pl.col(RATE) == 0).any().over(key))
    rows = [
        (*names, value)
        for names, group in points.group_by(key, maintain_order=True)
        if (value := quantity.of_trial(group)) is not None
    ]
    schema = {name: points.schema[name] for name in key} | {quantity.name: pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def medians(points: pl.DataFrame, quantities: Iterable[Quantity], by: list[str]) -> pl.DataFrame:
    """Return medians over trials: `by`, trials, and a column with the name of each quantity.

    `points` are those that count. The medians are of the rounds that all groups have.
    """
    points = shared_rounds(points, by)
    table = points.group_by(by, maintain_order=True).agg(
        pl.col("n").n_unique().cast(pl.Int64).alias("trials")
    )
    for quantity in quantities:
        column = (
            values(points, quantity, by)
            .group_by(by, maintain_order=True)
            .agg(pl.col(quantity.name).median())
        )
        table = table.join(column, on=by, how="left", maintain_order="left")
    return table


def shared_rounds(frame: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Return the rows of the rounds `n` that all groups of `by` have; all rows if they share none.

    A machine drifts between rounds, so that medians of other rounds have no order.
    """
    return frame.filter(pl.col("n").is_in(rounds_of_all(frame, by)))


def rounds_of_all(frame: pl.DataFrame, by: list[str]) -> list[int]:
    """Return the rounds `n` that all groups of `by` have; every round if they share none."""
    groups = frame.select(*by, "n").unique()
    counts = groups.group_by("n", maintain_order=True).len()
    shared = counts.filter(pl.col("len") == groups.select(by).n_unique())["n"]
    return (shared if len(shared) else counts["n"]).to_list()


def at_shared_rates(frames: list[pl.DataFrame], paired: bool = True) -> list[pl.DataFrame]:
    """Return the points at rates that all frames have: in each block, if they are paired by it.

    Each frame holds the points of one variant that count. Frames that share no block are not
    paired: they keep the rates that every trial of each has.
    """
    if paired and set.intersection(*(set(frame["n"]) for frame in frames)):
        key = ["n", RATE]
        shared = reduce(
            lambda left, right: left.join(right, on=key, how="semi"),
            (frame.select(key) for frame in frames),
        )
    else:
        key = [RATE]
        trials = [set(trial[RATE]) for frame in frames for trial in frame.partition_by("n")]
        rates = sorted(set.intersection(*trials)) if trials else []
        shared = pl.DataFrame({RATE: rates}, schema={RATE: pl.Int64})
    return [frame.join(shared, on=key, how="semi", maintain_order="left") for frame in frames]
