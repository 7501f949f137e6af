"""Which answers count: those with the status and the length that the experiment's checks expect.

In: points as the tables have them, which count every answer. Out: the same with `replies` and the
reply rate of good answers alone. Everything that is said of answers is computed after this.
"""

import polars as pl

from deathmatch.load import registry
from deathmatch.quantities.quantity import REPLY

WRONG = "wrong_answers"
"""The column of the wrong answers of a point, of every class together."""


def only_good(points: pl.DataFrame) -> pl.DataFrame:
    """Return points whose `replies` and reply rate are those of good answers, with WRONG.

    The rate is that of all answers times the share of good ones, as a load generator does not
    count wrong answers by interval. A point whose report is not whole has null in all three.
    Points without replies, of a store, are returned as they are.
    """
    if "replies" not in points.columns:
        return points
    among, besides = (_sum(points, names) for names in _columns())
    good = pl.col("replies") - among
    share = pl.when(pl.col("replies") > 0).then(good / pl.col("replies")).otherwise(1.0)
    counted = points.with_columns((among + besides).alias(WRONG))
    # Where all answers are good, the rate stays what it was, to its last digit.
    slower = pl.when(among > 0).then(pl.col(REPLY) * share).otherwise(pl.col(REPLY)).alias(REPLY)
    return counted.with_columns(good.alias("replies"), *([slower] if REPLY in points else []))


def _columns() -> tuple[set[str], set[str]]:
    """Return the columns of wrong answers among `replies`, and of those that it leaves out."""
    generators = [registry.generator(name) for name in registry.names()]
    return (
        {name for each in generators for name in each.wrong_replies},
        {name for each in generators for name in each.wrong_besides},
    )


def _sum(points: pl.DataFrame, names: set[str]) -> pl.Expr:
    """Return the sum of those columns that are there; null where the report is not whole."""
    known = [pl.col(name).fill_null(0) for name in sorted(names & set(points.columns))]
    return pl.when(pl.col("replies").is_not_null()).then(pl.sum_horizontal(pl.lit(0), *known))
