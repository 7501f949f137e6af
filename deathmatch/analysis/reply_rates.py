"""What servers answered at which offered rate: curves, plateaus and their order."""

import polars as pl

from deathmatch.analysis import phrases, stats
from deathmatch.analysis.by_trial import shared_rounds, values
from deathmatch.data import limits
from deathmatch.quantities.definitions import HIGHEST_REPLY_RATE
from deathmatch.quantities.quantity import RATE, REPLY, TOP

AT_TOP = pl.col(RATE) == pl.col(TOP)
# Replies a request offered: fewer are lost at the edges of the offered window.
ALL_ANSWERED = 0.97
# For the captions of figures that mark `all_answered`.
ARROWHEAD = "Arrowhead: answered all that was offered, and may do more."


def with_top(points: pl.DataFrame) -> pl.DataFrame:
    """Return points with TOP; those of a store, which has no offered rate, as they are."""
    if RATE not in points.columns:
        return points
    within = pl.col(RATE).filter(~limits.by_testbed(points))
    return points.with_columns(within.max().over("server", "variant").alias(TOP))


def at_rate(rate_rps: int | None) -> pl.Expr:
    """Return an expression that is true of the rows at this rate; of no row for None."""
    return pl.col(RATE) == pl.lit(rate_rps, dtype=pl.Int64)


def curves(points: pl.DataFrame, column: str = REPLY, by: str = "label") -> pl.DataFrame:
    """Return a curve with its interval over trials for each level of `by`.

    Columns: `by`, the offered rate, trials, value, low, high; sorted. Of the rounds that all levels
    have.
    """
    summary = stats.summarise(shared_rounds(points, [by]), [by, RATE], column).sort(by, RATE)
    return summary.rename({"median": "value"})


def plateaus(points: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Return for each group the interval of HIGHEST_REPLY_RATE, over the rounds that all have.

    `points` are those that count. Columns: `by`, those of `stats.INTERVAL`, and `all_answered`:
    whether the median is all that was offered, so that the server may do more.
    """
    peaks = values(points, HIGHEST_REPLY_RATE, by).sort(*by, "n")
    tops = points.group_by(by, maintain_order=True).agg(pl.col(TOP).max())
    summary = stats.summarise(shared_rounds(peaks, by), by, HIGHEST_REPLY_RATE.name)
    answered = pl.col("median") >= ALL_ANSWERED * pl.col(TOP)
    return (
        summary.join(tops, on=by, maintain_order="left")
        .with_columns(all_answered=answered)
        .drop(TOP)
    )


def cited_and_best(ranked: list[str], cited: list[str], most: int) -> list[str]:
    """Return `most` names of a ranking, in its order: those that prose cites, then the first."""
    kept = [name for name in ranked if name in cited]
    kept += [name for name in ranked if name not in cited][: max(0, most - len(kept))]
    return [name for name in ranked if name in kept]


def ranking(plateaus: pl.DataFrame, column: str) -> str:
    """Return the names in `column` of `plateaus`, highest first: "a > b".

    Those that answered all that was offered have no order among them: "a and b, without a limit
    here, > c".
    """
    ordered = plateaus.sort("median", descending=True)
    unlimited = sorted(ordered.filter("all_answered")[column])
    rest = ordered.filter(~pl.col("all_answered"))[column].to_list()
    if len(unlimited) < 2:
        return " > ".join(ordered[column])
    return " > ".join([f"{phrases.enumeration(unlimited)}, without a limit here,", *rest])
