"""What every CPU gains over one: the experiments single-thread and scale-out.

In: the points of both. Out: ratios of their highest reply rates.
"""

import polars as pl

from deathmatch.analysis import reply_rates, stats
from deathmatch.analysis.reply_rates import REPLY


def gains(single: pl.DataFrame, scale: pl.DataFrame) -> pl.DataFrame:
    """Return the ratio of the highest reply rate with every CPU to that with one, by server.

    Columns: title and those of `stats.INTERVAL`, paired by round. Only of servers that are in both
    and answered all that was offered in neither.
    """
    both = pl.concat([reply_rates.plateaus(part, ["server", "title"]) for part in (single, scale)])
    limited = both.filter(
        pl.len().over("server") > 1, ~pl.col("all_answered").any().over("server")
    ).unique("server", maintain_order=True)
    best = (
        pl.concat([single, scale], how="diagonal")
        .group_by("server", "schedulers", "n", maintain_order=True)
        .agg(pl.col(REPLY).max())
    )
    schedulers = pl.col("schedulers")
    rows = [
        {"title": title}
        | stats.ratio(best.filter(server=server), schedulers == "all", schedulers == "one", REPLY)
        for server, title in limited.select("server", "title").rows()
    ]
    return pl.DataFrame(rows, schema={"title": pl.String} | stats.INTERVAL)
