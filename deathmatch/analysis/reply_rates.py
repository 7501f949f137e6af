"""Reply rates by offered rate: curves, and the order of servers."""

import polars as pl

from deathmatch.analysis import phrases, stats
from deathmatch.analysis.by_trial import shared_rounds
from deathmatch.data import limits
from deathmatch.quantities.definitions import hardest_of
from deathmatch.quantities.quantity import RATE, REPLY, TOP


def with_top(points: pl.DataFrame) -> pl.DataFrame:
    """Return points with TOP; points of a store, without an offered rate, as they are."""
    if RATE not in points.columns:
        return points
    within = pl.when(~limits.beyond_testbed(points)).then(RATE)
    return points.with_columns(hardest_of(within).over("server", "variant").alias(TOP))


def at_rate(rate_rps: int | None) -> pl.Expr:
    """Return an expression that is true of the rows at this rate; of no row for None."""
    return pl.col(RATE) == pl.lit(rate_rps, dtype=pl.Int64)


def curves(points: pl.DataFrame, by: list[str], column: str = REPLY) -> pl.DataFrame:
    """Return a curve with its interval over trials for each group of `by`.

    Columns: `by`, the offered rate, trials, value, low, high; sorted. Only the rounds that all
    groups have count.
    """
    summary = stats.summarise(shared_rounds(points, by), [*by, RATE], column).sort(*by, RATE)
    return summary.rename({"median": "value"})


def ranking(rates: pl.DataFrame, column: str) -> str:
    """Return the names in `column`, the highest `median` first: "a > b".

    Servers of which only a bound is known, `at_least`, have no order: "a and b, without a limit
    here, > c".
    """
    ordered = rates.sort("median", descending=True)
    unlimited = sorted(ordered.filter("at_least")[column])
    rest = ordered.filter(~pl.col("at_least"))[column].to_list()
    if len(unlimited) < 2:
        return " > ".join(ordered[column])
    return " > ".join([f"{phrases.enumeration(unlimited)}, without a limit here,", *rest])
