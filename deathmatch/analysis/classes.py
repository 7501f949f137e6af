"""Classes of variants that cannot be told apart, each formed against a fixed anchor.

In: one value a trial of each variant, by round. Out: the class of each, 1 the best.
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
HEADING = {CLASS: "Class"}
EXPLAINED = (
    "Class: those that cannot be told apart share one. The best of those in no class yet is its "
    "anchor; the others join, in their order, until one is told from it within rounds. With fewer "
    "than five trials there is none."
)
LEAST_ROUNDS = 5
"""With fewer, only what differs manyfold could be told apart, and a class would say nothing."""
Name = TypeVar("Name")


def of_values(known: Mapping[Name, Values], higher_is_better: bool) -> dict[Name, int]:
    """Return the class of each variant with LEAST_ROUNDS or more, by its name, the best first.

    The ratio within rounds to the anchor is tested as the ledger tests one (`judging.effect`), at
    ERROR over the number of pairs: with whichever variant chance makes the anchor, all of a set of
    equal ones share a class in 1 - ERROR of such sets or more (Bonferroni). What is known by a
    bound alone, or shares fewer than LEAST_ROUNDS with the anchor, is told from nothing. Values
    must be positive (ValueError).
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
    """Return the columns `by` and CLASS of each group, by CPU per reply: the cheapest first.

    `points` are those that count; at the lowest rate that all groups have, no row without one.
    """
    offered = points.filter(pl.col(RATE) > 0)
    parts = offered.partition_by(by)
    shared = frozenset.intersection(*(frozenset(part[RATE]) for part in parts)) if parts else ()
    at_lowest = offered.filter(reply_rates.at_rate(min(shared, default=None)))
    return of_trials(values(at_lowest, CPU_PER_REPLY, by), CPU_PER_REPLY, by)


def of_trials(trials: pl.DataFrame, quantity: Quantity, by: list[str]) -> pl.DataFrame:
    """Return the same of rows with `by`, the round `n` and a column with the quantity's name."""
    known = {
        group: Values(dict(part.select("n", quantity.name).drop_nulls().iter_rows()))
        for group, part in trials.partition_by(by, as_dict=True, maintain_order=True).items()
    }
    classes = of_values(known, quantity.higher_is_better)
    schema = {name: trials.schema[name] for name in by} | {CLASS: pl.Int64}
    return pl.DataFrame([(*name, own) for name, own in classes.items()], schema, orient="row")
