"""Classes of variants between which trials show no difference, each with a fixed anchor.

In: one value a trial of each variant, by round. Out: the class of each variant; 1 is the best.
"""

from collections.abc import Mapping
from itertools import combinations
from typing import TypeVar

import polars as pl

from deathmatch.analysis import judging, reply_rates
from deathmatch.analysis.by_trial import Values, values
from deathmatch.analysis.trial_tests import ERROR, mean_interval
from deathmatch.quantities.definitions import CPU_PER_REPLY
from deathmatch.quantities.quantity import RATE, Quantity

CLASS = "class"
EXPLAINED = (
    "Class: variants without a difference that trials show share one. The best without a class is "
    "the anchor; the next ones join it, in their order, until one differs from it within rounds. "
    "Variants with fewer than five trials have no class."
)
LEAST_ROUNDS = 5
"""Fewer rounds would only show differences of several times, and classes would mean nothing."""
Name = TypeVar("Name")


def of_values(known: Mapping[Name, Values], higher_is_better: bool) -> dict[Name, int]:
    """Return the class of each variant with LEAST_ROUNDS or more, by its name, the best first.

    The ratio to the anchor within rounds is tested as in the ledger (`judging.effect`), at ERROR
    over the number of pairs: whichever variant becomes the anchor by chance, equal variants all
    share a class in at least 1 - ERROR of cases (Bonferroni). A variant with bounds alone, or with
    fewer than LEAST_ROUNDS in common with the anchor, differs from nothing. Values must be
    positive (ValueError).
    """
    enough = {name: one.all for name, one in known.items() if len(one) >= LEAST_ROUNDS}
    means = {name: mean_interval(trials, ERROR).estimate for name, trials in enough.items()}
    ordered = sorted(means, key=means.get, reverse=higher_is_better)
    level = ERROR / max(1, len([*combinations(ordered, 2)]))
    classes: dict[Name, int] = {}
    anchor, number = None, 0
    for name in ordered:
        if anchor is None or _are_told_apart(known[anchor], known[name], level):
            anchor, number = name, number + 1
        classes[name] = number
    return classes


def _are_told_apart(anchor: Values, other: Values, level: float) -> bool:
    if len(anchor.blocks & other.blocks) < LEAST_ROUNDS:
        return False
    ratio = judging.effect([other, anchor], level=level)
    return not ratio.low <= 1 <= ratio.high


def by_cost(points: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Return the columns `by` and CLASS of each group by CPU per reply, the cheapest first.

    `points` are those that count, compared at the lowest rate that all groups have; no row without
    such a rate.
    """
    offered = points.filter(pl.col(RATE) > 0)
    parts = offered.partition_by(by)
    shared = frozenset.intersection(*(frozenset(part[RATE]) for part in parts)) if parts else ()
    at_lowest = offered.filter(reply_rates.at_rate(min(shared, default=None)))
    return of_trials(values(at_lowest, CPU_PER_REPLY, by), CPU_PER_REPLY, by)


def of_trials(trials: pl.DataFrame, quantity: Quantity, by: list[str]) -> pl.DataFrame:
    """Return the classes of rows with `by`, the round `n` and a column of the quantity's name."""
    known = {
        group: Values(dict(part.select("n", quantity.name).drop_nulls().iter_rows()))
        for group, part in trials.partition_by(by, as_dict=True, maintain_order=True).items()
    }
    classes = of_values(known, quantity.higher_is_better)
    schema = {name: trials.schema[name] for name in by} | {CLASS: pl.Int64}
    return pl.DataFrame([(*name, own) for name, own in classes.items()], schema, orient="row")
