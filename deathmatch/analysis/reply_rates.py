"""What servers answered at which offered rate: curves, plateaus and their order."""

import polars as pl

from deathmatch.analysis import phrases, stats
from deathmatch.quantities.quantity import RATE, REPLY

# The highest rate that the variant of a point was offered.
TOP = "top_rate_rps"
AT_TOP = pl.col(RATE) == pl.col(TOP)
# Replies a request offered: fewer are lost at the edges of the offered window.
ALL_ANSWERED = 0.97
# For the captions of figures that mark `all_answered`.
ARROWHEAD = "Arrowhead: answered all that was offered, and may do more."


def with_top(points: pl.DataFrame) -> pl.DataFrame:
    """Return points with TOP; those of a store, which has no offered rate, as they are."""
    if RATE not in points.columns:
        return points
    return points.with_columns(pl.col(RATE).max().over("server", "variant").alias(TOP))


def at_rate(rate_rps: int | None) -> pl.Expr:
    """Return what holds of the rows at this rate; of none where there is no such rate."""
    return pl.col(RATE) == pl.lit(rate_rps, dtype=pl.Int64)


def curves(points: pl.DataFrame, column: str = REPLY, by: str = "label") -> pl.DataFrame:
    """Return a curve with its interval over trials for each level of `by`.

    Columns: `by`, the offered rate, trials, value, low, high; sorted.
    """
    found = stats.summarise(points, [by, RATE], column).sort(by, RATE)
    return found.rename({"median": "value"})


def plateaus(points: pl.DataFrame, by: list[str], column: str = REPLY) -> pl.DataFrame:
    """Return for each group the highest value of any offered rate, per trial, summarised.

    A trial whose point at its variant's highest rate is missing from `points`, being
    client-limited, has not shown its plateau and does not count. Columns: `by`, those of
    `stats.INTERVAL`, and `all_answered`: whether the median is all that was offered, so that the
    server may do more.
    """
    best = points.group_by(*by, "n", maintain_order=True).agg(
        pl.col(column, TOP).max(), reached=pl.col(RATE).max()
    )
    whole = best.filter(pl.col("reached") == pl.col(TOP)).sort(*by, "n")
    tops = whole.group_by(by, maintain_order=True).agg(pl.col(TOP).max())
    found = stats.summarise(whole, by, column).join(tops, on=by, maintain_order="left")
    return found.with_columns(all_answered=pl.col("median") >= ALL_ANSWERED * pl.col(TOP)).drop(TOP)


def cited_and_best(ranked: list[str], cited: list[str], most: int) -> list[str]:
    """Return `most` names of a ranking, in its order: those that prose cites, then the first."""
    kept = [name for name in ranked if name in cited]
    kept += [name for name in ranked if name not in cited][: max(0, most - len(kept))]
    return [name for name in ranked if name in kept]


def ranking(found: pl.DataFrame, column: str) -> str:
    """Return the names in `column` of `plateaus`, highest first: "a > b".

    Those that answered all that was offered have no order among them: "a and b, without a limit
    here, > c".
    """
    ordered = found.sort("median", descending=True)
    unlimited = sorted(ordered.filter("all_answered")[column])
    rest = ordered.filter(~pl.col("all_answered"))[column].to_list()
    if len(unlimited) < 2:
        return " > ".join(ordered[column])
    return " > ".join([f"{phrases.enumeration(unlimited)}, without a limit here,", *rest])
