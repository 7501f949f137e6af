"""Mean and quantiles of the times that a client records in histograms, as columns of points.

In: points, and the table `times` of their experiment. Out: the points with `<quantity>_mean_us`,
`_p50_us` and `_p99_us`, null where the client kept no such times.
"""

from functools import cache

import polars as pl

from deathmatch.data import tables
from deathmatch.errors import UserError
from deathmatch.load import histogram
from deathmatch.quantities.quantity import RATE

_KEY = ["server", "variant", "n", RATE]
_SHARES = {"p50": 0.5, "p99": 0.99}


def joined(dataset: str, experiment: str, points: pl.DataFrame, quantity: str) -> pl.DataFrame:
    """Return points with the mean and the quantiles of their times, in us.

    Points that have these columns already, of a client that computes them, stay as they are. The
    quantiles are of few connections in short runs: what that adds is part of the spread between
    trials, from which the interval is made.
    """
    if f"{quantity}_p50_us" in points.columns or RATE not in points.columns:
        return points
    times = _summary(dataset, experiment, quantity)
    return points.join(times, on=_KEY, how="left", maintain_order="left")


@cache
def _summary(dataset: str, experiment: str, quantity: str) -> pl.DataFrame:
    """Return the mean and the quantiles of each point of an experiment that has such times."""
    names = [f"{quantity}_{name}_us" for name in ("mean", *_SHARES)]
    kinds = {"server": pl.String, "variant": pl.String, "n": pl.Int64, RATE: pl.Int64}
    kinds |= dict.fromkeys(names, pl.Float64)
    try:
        times = tables.scan(dataset, experiment, "times")
    except UserError:
        return pl.DataFrame(schema=kinds)
    known = times.filter(pl.col("quantity") == quantity).drop_nulls("time_us")
    bins = known.select(*_KEY, "time_us", "count").sort("time_us")
    times_us, counts = pl.col("time_us"), pl.col("count")
    values = [(times_us * counts).sum() / counts.sum()]
    values += [histogram.quantile(share) for share in _SHARES.values()]
    of_points = (value.cast(pl.Float64).alias(name) for name, value in zip(names, values))
    return bins.group_by(_KEY, maintain_order=True).agg(of_points).collect()


def clear_cache() -> None:
    """Read the tables anew from now on."""
    _summary.cache_clear()
