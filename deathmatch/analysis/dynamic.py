"""Variants of the experiment dynamic, compared with others of the same server.

In: points of the experiment. Out: a frame for a table.
"""

import polars as pl

from deathmatch.analysis import reply_rates, stats
from deathmatch.analysis.by_trial import values
from deathmatch.analysis.stats import NO_TRIAL
from deathmatch.quantities.definitions import REPLY_RATE_OVERLOAD
from deathmatch.quantities.quantity import TOP


def variant_ratios(points: pl.DataFrame) -> pl.DataFrame:
    """Return the reply rate in overload of each variant over that of the first of the same server.

    Columns: variant, against and those of `stats.INTERVAL`, paired by round; without an interval
    where either answered that rate in full, or was offered another. `points` are those that count.
    """
    in_full = reply_rates.in_overload(points, ["server", "label"]).filter("at_least")
    unlimited = set(in_full["label"])
    tops = dict(points.group_by("label", maintain_order=True).agg(pl.col(TOP).max()).iter_rows())
    rows = []
    for server in sorted(set(points["server"])):
        mine = points.filter(pl.col("server") == server)
        first, *others = mine["label"].unique().sort()
        rates, name = values(mine, REPLY_RATE_OVERLOAD, ["label"]), REPLY_RATE_OVERLOAD.name
        for label in others:
            ratio = stats.ratio(rates, pl.col("label") == label, pl.col("label") == first, name)
            unknown = {label, first} & unlimited or tops[label] != tops[first]
            rows.append({"variant": label, "against": first} | (NO_TRIAL if unknown else ratio).row)
    names = {"variant": pl.String, "against": pl.String}
    return pl.DataFrame(rows, schema=names | stats.INTERVAL)
