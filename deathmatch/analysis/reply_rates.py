"""What servers answered at which offered rate: curves, plateaus, their order, gains by CPUs."""

import math

import polars as pl

from deathmatch.analysis import phrases, stats
from deathmatch.analysis.by_trial import shared_rounds, values
from deathmatch.data import limits
from deathmatch.quantities.definitions import HIGHEST_REPLY_RATE
from deathmatch.quantities.quantity import ALL_ANSWERED, RATE, REPLY, TOP

AT_TOP = pl.col(RATE) == pl.col(TOP)
# For the captions of figures that mark `at_least`.
ARROWHEAD = "Arrowhead: answered in full the rate at which it replied most, and may do more."


def with_top(points: pl.DataFrame) -> pl.DataFrame:
    """Return points with TOP; those of a store, which has no offered rate, as they are."""
    if RATE not in points.columns:
        return points
    within = pl.when(~limits.beyond_testbed(points)).then(RATE)
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

    `points` are those that count. Columns: `by`, those of `stats.INTERVAL`; `all_answered`: whether
    the median is all that was offered; `at_least`: whether half of the trials or more answered
    in full the rate of their highest reply rate, so that the server may do more.
    """
    peaks = values(points, HIGHEST_REPLY_RATE, by).sort(*by, "n")
    tops = points.group_by(by, maintain_order=True).agg(pl.col(TOP).max())
    peaks = shared_rounds(peaks, by)
    summary = stats.summarise(peaks, by, HIGHEST_REPLY_RATE.name)
    counted = points.join(peaks, on=[*by, "n"], how="semi", maintain_order="left")
    in_full = pl.DataFrame(
        [
            (*key, below(trial) is not None)
            for key, trial in counted.group_by([*by, "n"], maintain_order=True)
        ],
        schema={name: points.schema[name] for name in [*by, "n"]} | {"at_least": pl.Boolean},
        orient="row",
    )
    shares = in_full.group_by(by, maintain_order=True).agg(pl.col("at_least").mean() >= 0.5)
    answered = pl.col("median") >= ALL_ANSWERED * pl.col(TOP)
    return (
        summary.join(tops, on=by, maintain_order="left")
        .with_columns(all_answered=answered)
        .join(shares, on=by, maintain_order="left")
        .drop(TOP)
    )


def below(trial: pl.DataFrame) -> float | None:
    """Return what the highest reply rate that a trial can come to is below; None if it is shown.

    A rate that was answered in full is not a limit of the server, also where it answered less of
    all higher ones: its limit is below the next of those, which is infinite without one. `trial`
    has the points that count.
    """
    rates_rps = trial[RATE].to_list()
    answered = (pair for pair in zip(trial[REPLY].to_list(), rates_rps) if pair[0] is not None)
    best_rps, at_rps = max(answered, default=(0, 0))
    if at_rps == 0 or best_rps < ALL_ANSWERED * at_rps:
        return None
    return min((float(rate_rps) for rate_rps in rates_rps if rate_rps > at_rps), default=math.inf)


def cited_and_best(ranked: list[str], cited: list[str], most: int) -> list[str]:
    """Return `most` names of a ranking, in its order: those that prose cites, then the first."""
    kept = [name for name in ranked if name in cited]
    kept += [name for name in ranked if name not in cited][: max(0, most - len(kept))]
    return [name for name in ranked if name in kept]


def ranking(plateaus: pl.DataFrame, column: str) -> str:
    """Return the names in `column` of `plateaus`, highest first: "a > b".

    Those that answered all that was offered have no order among them: "a and b, without a limit
    here, > c". One that answered its highest reply rate in full may do more: "a > b (at least)".
    """
    open_ended = pl.col("at_least") & ~pl.col("all_answered")
    name = pl.when(open_ended).then(pl.format("{} (at least)", column)).otherwise(column)
    ordered = plateaus.sort("median", descending=True).with_columns(name.alias(column))
    unlimited = sorted(ordered.filter("all_answered")[column])
    rest = ordered.filter(~pl.col("all_answered"))[column].to_list()
    if len(unlimited) < 2:
        return " > ".join(ordered[column])
    return " > ".join([f"{phrases.enumeration(unlimited)}, without a limit here,", *rest])


def gains(single: pl.DataFrame, scale: pl.DataFrame) -> pl.DataFrame:
    """Return the ratio of the highest reply rate with every CPU to that with one, by server.

    Columns: title and those of `stats.INTERVAL`, paired by round. Only of servers that are in both
    and answered its highest rate in full in neither.
    """
    both = pl.concat([plateaus(part, ["server", "title"]) for part in (single, scale)])
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
