"""Comparisons of claims and findings on a dataset: their values, and why there are none.

In: a `Comparison` and the tables of a dataset. Out: a part of a rule for `judging`.
"""

import polars as pl

from deathmatch.analysis import judging, selecting, views
from deathmatch.analysis.by_trial import counted
from deathmatch.analysis.comparison import Comparison, Selector
from deathmatch.analysis.judging import Judgement, Part
from deathmatch.analysis.stats import Interval
from deathmatch.quantities.definitions import QUANTITIES


def part(dataset: str, experiment: str, compared: Comparison) -> Part:
    """Return a comparison with its values in each round."""
    sides = selecting.compared_values(dataset, experiment, compared)
    return Part(sides, compared.low, compared.high, compared.paired, compared)


def judged(dataset: str, experiment: str, comparisons: tuple[Comparison, ...]) -> Judgement:
    """Return the judgement on comparisons that must all hold."""
    return judging.together([part(dataset, experiment, compared) for compared in comparisons])


def effect(
    dataset: str, experiment: str, compared: Comparison, level: float | None = None
) -> Interval:
    """Return the interval of a / b, or of a alone: with `level`, that of a verdict at it."""
    known = part(dataset, experiment, compared)
    return judging.effect(known.sides, known.paired, level)


def why_absent(dataset: str, experiment: str, known: Part) -> str:
    """Return why `part` has no number in a dataset, as the end of a sentence; "" if it has one.

    The reason is that of the first side without a value.
    """
    for selector, side in zip(known.comparison.sides, known.sides):
        if not side:
            return _why_absent(dataset, experiment, known.comparison, selector)
    return ""


def _why_absent(dataset: str, experiment: str, compared: Comparison, selector: Selector) -> str:
    name = selecting.selector_phrase(selector)
    own = selector.get("experiment", experiment)
    if selecting.points(dataset, own) is None and selecting.trials(dataset, own) is None:
        return f"the dataset has no experiment {own}"
    tried = selecting.selected(dataset, own, selector, table=selecting.trials)
    points = selecting.selected(dataset, own, selector)
    if tried is None and points is None:
        return f"{name} is not in this dataset"
    if points is None:
        return f"{name}: {views.why_not_measured(tried.row(0, named=True), pl.DataFrame())}"
    if compared.least_s and (longest := points["duration_us"].max() / 1e6) < compared.least_s:
        return f"{name}: points of {longest:g} s, where {compared.least_s} s are needed"
    if not len(counted(points)):
        return f"{name}: {views.why_not_measured({'outcome': 'measured'}, points)}"
    statistic = str(selector.get("statistic", compared.statistic))
    if selecting.values(dataset, experiment, selector | {"statistic": statistic}):
        return f"{name}: no offered rate counts for all compared variants"
    return f"{name}: no {QUANTITIES[statistic].title} was recorded"
