"""Reply rates by offered rate: curves, the rate in overload, the order of servers by it."""

import polars as pl

from deathmatch.analysis import phrases, stats
from deathmatch.analysis.by_trial import shared_rounds, values
from deathmatch.analysis.stats import NO_TRIAL
from deathmatch.data import limits
from deathmatch.quantities.definitions import ANSWERED, REPLY_RATE_OVERLOAD, hardest_of
from deathmatch.quantities.quantity import RATE, REPLY, TOP

AT_TOP = pl.col(RATE) == pl.col(TOP)
# For the captions of figures that mark `at_least`.
ARROWHEAD = "Arrowhead: answered that rate in full, and may do more."


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


def in_overload(points: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Return for each group the interval of REPLY_RATE_OVERLOAD, over the rounds that all have.

    `points` are those that count; each variant is at its own highest rate, TOP. Columns: `by`,
    those of `stats.INTERVAL`; `at_least`: whether at least half of the trials answered that rate in
    full, so the server may do more.
    """
    rates = shared_rounds(values(points, REPLY_RATE_OVERLOAD, by).sort(*by, "n"), by)
    summary = stats.summarise(rates, by, REPLY_RATE_OVERLOAD.name)
    shares = (
        points.filter(AT_TOP)
        .join(rates, on=[*by, "n"], how="semi", maintain_order="left")
        .group_by(by, maintain_order=True)
        .agg(at_least=ANSWERED.mean() >= 0.5)
    )
    return summary.join(shares, on=by, how="left", maintain_order="left").with_columns(
        pl.col("at_least").fill_null(False)
    )


def variant_ratios(points: pl.DataFrame) -> pl.DataFrame:
    """Return the reply rate in overload of each variant over that of the first of the same server.

    Columns: variant, against and those of `stats.INTERVAL`, paired by round; without an interval if
    either answered its rate in full or their rates differ. `points` are those that count.
    """
    unlimited = set(in_overload(points, ["server", "label"]).filter("at_least")["label"])
    tops = dict(points.group_by("label", maintain_order=True).agg(pl.col(TOP).max()).iter_rows())
    rates, name = values(points, REPLY_RATE_OVERLOAD, ["label"]), REPLY_RATE_OVERLOAD.name
    rows = []
    for server in sorted(set(points["server"])):
        first, *others = points.filter(pl.col("server") == server)["label"].unique().sort()
        for label in others:
            ratio = stats.ratio(rates, pl.col("label") == label, pl.col("label") == first, name)
            unknown = {label, first} & unlimited or tops[label] != tops[first]
            rows.append({"variant": label, "against": first} | (NO_TRIAL if unknown else ratio).row)
    names = {"variant": pl.String, "against": pl.String}
    return pl.DataFrame(rows, schema=names | stats.INTERVAL)


def cited_and_best(ranked: list[str], cited: list[str], most: int) -> list[str]:
    """Return `most` names of a ranking, in its order: all that prose cites and the first others."""
    kept = [name for name in ranked if name in cited]
    kept += [name for name in ranked if name not in cited][: max(0, most - len(kept))]
    return [name for name in ranked if name in kept]


def ranking(rates: pl.DataFrame, column: str) -> str:
    """Return the names in `column` of `in_overload`, highest first: "a > b".

    Servers that answered all that they were offered have no order: "a and b, without a limit here,
    > c".
    """
    ordered = rates.sort("median", descending=True)
    unlimited = sorted(ordered.filter("at_least")[column])
    rest = ordered.filter(~pl.col("at_least"))[column].to_list()
    if len(unlimited) < 2:
        return " > ".join(ordered[column])
    return " > ".join([f"{phrases.enumeration(unlimited)}, without a limit here,", *rest])
