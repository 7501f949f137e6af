"""Quantities of trials: which points count, and at which rates and rounds variants are compared.

In: points of one variant or of several, and the table `times` of their experiment. Out: points that
count, with the mean and quantiles of times that a client records in histograms
(`<quantity>_mean_us`, `_p50_us`, `_p99_us`, null without a histogram); one value for each trial, or
a bound of it (`Values`); the drift between the rounds of an experiment.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, reduce

import polars as pl

from deathmatch.analysis import stats
from deathmatch.analysis.stats import Interval
from deathmatch.capacity_search import search
from deathmatch.data import laws, limits, tables
from deathmatch.data.laws.law import KEY
from deathmatch.errors import UserError
from deathmatch.load import histogram
from deathmatch.quantities.definitions import CPU_PER_REPLY, HARDEST
from deathmatch.quantities.quantity import RATE, TOP, Kind, Points, Quantity


def counted(points: pl.DataFrame, which: Points = Points.VALID) -> pl.DataFrame:
    """Return the points that count for a quantity with `points=which`; all of a store's."""
    if which == Points.SEARCHES:
        return points.filter(outcome=search.FOUND)
    if which == Points.TRIALS or "client_limited" not in points.columns:
        return points
    points = laws.steady(points) if which == Points.STEADY else points
    # A truncated report shows only how the server ended.
    reported = which == Points.ENDING or pl.col("report").ne_missing("truncated")
    return laws.upheld(points).filter(~limits.by_harness(points), reported)


def values(points: pl.DataFrame, quantity: Quantity, by: list[str]) -> pl.DataFrame:
    """Return the quantity of each trial: `by`, n, and a column with the quantity's name.

    `points` are those that count. Trials without a value have no row; neither do trials that lack
    the variant's highest rate, TOP, if the quantity describes a whole sweep.
    """
    key = [*by, "n"]
    if quantity.points == Points.STEADY:
        points = laws.steady(points)
    if quantity.whole_sweep:
        # A sweep that the client cut short has no result.
        points = points.filter(HARDEST.over(key) == pl.col(TOP).max().over(key))
    numbers = points.group_by(key, maintain_order=True).agg(quantity.number(points))
    return numbers.drop_nulls(quantity.name)


def medians(points: pl.DataFrame, quantities: Iterable[Quantity], by: list[str]) -> pl.DataFrame:
    """Return medians over trials: `by`, trials, and a column with the name of each quantity.

    `points` are those that count. The medians are of the rounds that all groups have.
    """
    points = shared_rounds(points, by)
    table = points.group_by(by, maintain_order=True).agg(
        pl.col("n").n_unique().cast(pl.Int64).alias("trials")
    )
    for quantity in quantities:
        column = (
            values(points, quantity, by)
            .group_by(by, maintain_order=True)
            .agg(pl.col(quantity.name).median())
        )
        table = table.join(column, on=by, how="left", maintain_order="left")
    return table


def shared_rounds(frame: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Return the rows of the rounds `n` that all groups of `by` have; all rows if they share none.

    A machine drifts between rounds, so that medians of other rounds have no order.
    """
    return frame.filter(pl.col("n").is_in(rounds_of_all(frame, by)))


def rounds_of_all(frame: pl.DataFrame, by: list[str]) -> list[int]:
    """Return the rounds `n` that all groups of `by` have; every round if they share none."""
    groups = frame.select(*by, "n").unique()
    counts = groups.group_by("n", maintain_order=True).len()
    shared = counts.filter(pl.col("len") == groups.select(by).n_unique())["n"]
    return (shared if len(shared) else counts["n"]).to_list()


def at_shared_rates(frames: list[pl.DataFrame], paired: bool = True) -> list[pl.DataFrame]:
    """Return the points at the rates that all frames have: within each block if they are paired.

    Each frame holds the points of one variant that count. Frames without a common block are not
    paired: they keep the rates that every trial of each frame has.
    """
    if paired and set.intersection(*(set(frame["n"]) for frame in frames)):
        key = ["n", RATE]
        shared = reduce(
            lambda left, right: left.join(right, on=key, how="semi"),
            (frame.select(key) for frame in frames),
        )
    else:
        key = [RATE]
        trials = [set(trial[RATE]) for frame in frames for trial in frame.partition_by("n")]
        rates = sorted(set.intersection(*trials)) if trials else []
        shared = pl.DataFrame({RATE: rates}, schema={RATE: pl.Int64})
    return [frame.join(shared, on=key, how="semi", maintain_order="left") for frame in frames]


def ratio(points: pl.DataFrame, quantity: Quantity, above: str, below: str) -> Interval:
    """Return the interval of a quantity's ratio between two labels, paired by round.

    `points` are those that count, of which the rates that both have in a round are compared.
    """
    label = pl.col("label")
    sides = at_shared_rates([points.filter(label == name) for name in (above, below)])
    known = values(pl.concat(sides), quantity, ["label"])
    return stats.ratio(known, label == above, label == below, quantity.name)


FIRST, LAST = 1, 3
"""The rounds that are compared for drift: every variant of a dataset has three or more."""
DRIFT = {"variants": pl.Int64, "higher": pl.Int64, "lower": pl.Int64, "ratio": pl.Float64}
_VARIANT = ["server", "variant"]


def _drift(points: pl.DataFrame) -> dict:
    """Return DRIFT: CPU per reply in round LAST over that in round FIRST.

    Counts the variants in which it is higher or lower; `ratio` is the median over variants. Each
    variant is taken at the rates that it has in both rounds.
    """
    both = points.filter(pl.col("n").is_in([FIRST, LAST]))
    whole = pl.col("n").n_unique().over([*_VARIANT, RATE]) == 2
    cost = values(both.filter(whole), CPU_PER_REPLY, _VARIANT)
    sides = [cost.filter(n=n).drop("n") for n in (LAST, FIRST)]
    last, first = (pl.col(CPU_PER_REPLY.name), pl.col(f"{CPU_PER_REPLY.name}_first"))
    ratios = sides[0].join(sides[1], on=_VARIANT, suffix="_first").select(ratio=last / first)
    return ratios.select(
        variants=pl.len(), higher=(pl.col("ratio") > 1).sum(), lower=(pl.col("ratio") < 1).sum(),
        ratio=pl.col("ratio").median(),
    ).row(0, named=True)  # fmt: skip


def drifts(points: dict[str, pl.DataFrame]) -> pl.DataFrame:
    """Return the drift of each experiment: DRIFT at its lowest rate and at all rates.

    `points` are those that count, by experiment; the columns at all rates begin with "all_". A
    closed loop is not a rate. Experiments without two rounds have no row.
    """
    rows = []
    for name, frame in points.items():
        offered = frame.filter(pl.col(RATE) > 0)
        lowest = offered.filter(pl.col(RATE) == pl.col(RATE).min())
        at_lowest, at_all = _drift(lowest), _drift(offered)
        if at_all["variants"]:
            rate = {"experiment": name, RATE: offered[RATE].min()}
            rows.append(rate | at_lowest | {f"all_{key}": at_all[key] for key in at_all})
    kinds = {f"all_{name}": kind for name, kind in DRIFT.items()}
    return pl.DataFrame(rows, {"experiment": pl.String, RATE: pl.Int64} | DRIFT | kinds)


@dataclass(frozen=True)
class Values:
    """A statistic by block, the number of a trial.

    `at_least`: blocks whose value may be higher, such as the reply rate of a trial that answered
    in full the rate meant to overload it; `at_most`: blocks whose value may be lower, such as a
    quotient by that. `kind`: the values that are possible. `step`: the last recorded digit, in
    their unit, such as the tenth of a millisecond in which httperf prints times; 0 if there are
    digits enough. `hidden`: there are trials, but the client was the limit in all of them. `short`:
    every rate was offered for less time than is needed.
    """

    by_block: Mapping[int, float] = field(default_factory=dict)
    at_least: frozenset[int] = frozenset()
    at_most: frozenset[int] = frozenset()
    kind: Kind = Kind.POSITIVE
    step: float = 0
    hidden: bool = False
    short: bool = False

    def __len__(self) -> int:
        """Return the number of trials with a value."""
        return len(self.by_block)

    @property
    def all(self) -> list[float]:
        """The values in the order of their blocks in the data."""
        return list(self.by_block.values())

    @property
    def blocks(self) -> set[int]:
        """The blocks that have a value."""
        return set(self.by_block)

    def over(self, below: "Values") -> "Values":
        """Return the quotients by another statistic, of blocks that both have; not by 0."""
        shared = sorted(n for n in self.blocks & below.blocks if below.by_block[n])
        return Values(
            {n: self.by_block[n] / below.by_block[n] for n in shared},
            at_least=(self.at_least | below.at_most).intersection(shared),
            at_most=(self.at_most | below.at_least).intersection(shared),
            kind=Kind.COUNT if Kind.COUNT in (self.kind, below.kind) else Kind.POSITIVE,
            hidden=self.hidden or below.hidden,
            short=self.short or below.short,
        )


_SHARES = {"p50": 0.5, "p99": 0.99}


def joined(dataset: str, experiment: str, points: pl.DataFrame, quantity: str) -> pl.DataFrame:
    """Return points with the mean and the quantiles of their times, in us.

    Points that already have these columns, from a client that computes them, stay as they are. In
    short runs the quantiles are of few connections, which adds to the spread between trials, and so
    to the interval.
    """
    if f"{quantity}_p50_us" in points.columns or RATE not in points.columns:
        return points
    times = _summary(dataset, experiment, quantity)
    return points.join(times, on=KEY, how="left", maintain_order="left")


@cache
def _summary(dataset: str, experiment: str, quantity: str) -> pl.DataFrame:
    try:
        # Points are named without their client (`selecting`).
        times = tables.of_any_client(tables.scan(dataset, experiment, "times"))
    except UserError:
        times = pl.LazyFrame(schema=tables.columns(experiment, "times"))
    return of_points(times, quantity)


def of_points(times: pl.LazyFrame, quantity: str) -> pl.DataFrame:
    """Return the mean and the quantiles of each point that has such times, by its key, in us."""
    known = times.filter(pl.col("quantity") == quantity).drop_nulls("time_us")
    bins = known.select(*KEY, "time_us", "count").sort("time_us")
    times_us, counts = pl.col("time_us"), pl.col("count")
    values = [(times_us * counts).sum() / counts.sum()]
    values += [histogram.quantile(share) for share in _SHARES.values()]
    names = (f"{quantity}_{name}_us" for name in ("mean", *_SHARES))
    columns = (value.cast(pl.Float64).alias(name) for name, value in zip(names, values))
    return bins.group_by(KEY, maintain_order=True).agg(columns).collect()
