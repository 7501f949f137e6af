"""What every CPU gains over one: the experiments single-thread and scale-out.

In: the points of both that count. Out: ratios of their highest reply rates.
"""

import polars as pl

from deathmatch.analysis import reply_rates, stats
from deathmatch.analysis.by_trial import values
from deathmatch.quantities.definitions import HIGHEST_REPLY_RATE


def gains(single: pl.DataFrame, scale: pl.DataFrame) -> pl.DataFrame:
    """Return the ratio of the highest reply rate with every CPU to that with one, by server.

    Columns: title and those of `stats.INTERVAL`, paired by round. Only of servers that are in both
    and answered its highest rate in full in neither.
    """
    both = pl.concat([reply_rates.plateaus(part, ["server", "title"]) for part in (single, scale)])
    limited = both.filter(
        pl.len().over("server") > 1, ~pl.col("at_least").any().over("server")
    ).unique("server", maintain_order=True)
    points = pl.concat([single, scale], how="diagonal")
    peaks = values(points, HIGHEST_REPLY_RATE, ["server", "schedulers"])
    name = HIGHEST_REPLY_RATE.name
    levels = [pl.col("schedulers") == level for level in ("all", "one")]
    rows = [
        {"title": title} | stats.ratio(peaks.filter(server=server), *levels, name).row
        for server, title in limited.select("server", "title").rows()
    ]
    return pl.DataFrame(rows, schema={"title": pl.String} | stats.INTERVAL)
