"""How one rule of claims.toml is decided on a dataset.

A statistic is first taken of each trial (`selecting`), by block, the trial's number; ratios are
paired within a block. The header of `data/published/claims.toml` says how each kind of rule is
decided.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from statistics import fmean

from scipy.stats import spearmanr

from deathmatch.analysis import judging, published, trial_tests
from deathmatch.analysis.by_trial import Values
from deathmatch.analysis.judging import Compared, Judgement, Part, claimed_range
from deathmatch.analysis.selecting import (
    compared_levels,
    compared_values,
    measured_levels,
    selected,
)
from deathmatch.analysis.stats import Interval
from deathmatch.quantities.quantity import Kind


def decide(dataset: str, experiment: str, rule: dict) -> Judgement:
    """Return the judgement on one rule, with the interval of the part that decides it."""
    return judging.together(list(_parts(dataset, experiment, rule)))


def compared(dataset: str, experiment: str, rule: dict, level: float | None = None) -> Interval:
    """Return the interval of a / b, or of a alone: with `level`, that of a verdict at it."""
    sides, same = _sides(dataset, experiment, rule)
    return judging.effect(sides, same, level)


def _parts(dataset: str, experiment: str, rule: dict) -> Iterator[Part]:
    """Return the comparisons that a rule consists of."""
    return _KINDS[rule["kind"]](dataset, experiment, rule)


def _sides(dataset: str, experiment: str, rule: dict) -> tuple[list[Values], bool]:
    """Return the values of a, and of b if there is one; and whether they are paired by block."""
    selectors = [rule[side] for side in ("a", "b") if side in rule]
    same = len({selector.get("experiment", experiment) for selector in selectors}) == 1
    return compared_values(dataset, experiment, rule, selectors, paired=same), same


def _compared(experiment: str, rule: dict, *selectors: dict) -> tuple[Compared, ...]:
    """Return what was compared: of these selectors, or of the rule's own a and b."""
    chosen = selectors or [rule[side] for side in ("a", "b") if side in rule]
    return tuple(Compared(rule, selector, experiment) for selector in chosen)


def _threshold(dataset: str, experiment: str, rule: dict) -> Iterator[Part]:
    claimed = claimed_range(rule["threshold"], rule["direction"])
    for chosen in _at_each_level(dataset, experiment, rule):
        sides, same = _sides(dataset, experiment, chosen)
        direction = _direction(*claimed) if len(sides) == 2 else None
        yield Part(sides, *claimed, same, _compared(experiment, chosen), direction)


def _direction(low: float, high: float) -> tuple[float, float] | None:
    """Return the range of the direction of ratios in a range; None if they go either way.

    None, too, where the range says no more than the direction.
    """
    above, below = claimed_range(1, "above"), claimed_range(1, "below")
    if (low, high) in (above, below):
        return None
    return above if low >= 1 else below if high <= 1 else None


def _at_each_level(dataset: str, experiment: str, rule: dict) -> list[dict]:
    """Return the rule once for every value of its `each` column that both sides have."""
    if "each" not in rule:
        return [rule]
    sides = [side for side in ("a", "b") if side in rule]
    common: set | None = None
    for side in sides:
        frame = selected(dataset, experiment, rule[side])
        if frame is None or rule["each"] not in frame.columns:
            return [rule]
        levels = set(frame[rule["each"]])
        common = levels if common is None else common & levels
    return [
        rule | {side: rule[side] | {rule["each"]: level} for side in sides}
        for level in compared_levels(common or set(), rule, rule["each"])
    ]


def _within(dataset: str, experiment: str, rule: dict) -> Iterator[Part]:
    sides, same = _sides(dataset, experiment, rule)
    claimed = (rule["low"], rule["high"])
    direction = _direction(*claimed) if len(sides) == 2 else None
    yield Part(sides, *claimed, same, _compared(experiment, rule), direction)


def _level(rule: dict, level) -> dict:
    chosen = level if isinstance(level, dict) else {rule["over"]: level}
    return rule.get("where", {}) | chosen


def _pair(dataset: str, experiment: str, rule: dict, above: dict, below: dict, side: str) -> Part:
    sides = compared_values(dataset, experiment, rule, [above, below])
    compared = _compared(experiment, rule, above, below)
    return Part(sides, *claimed_range(1, side), compared=compared)


def _order(dataset: str, experiment: str, rule: dict) -> Iterator[Part]:
    levels = [_level(rule, level) for level in rule["ascending"]]
    for lower, higher in itertools.pairwise(levels):
        yield _pair(dataset, experiment, rule, higher, lower, "above")


def _best(dataset: str, experiment: str, rule: dict) -> Iterator[Part]:
    best = _level(rule, rule["level"])
    levels = rule.get("levels")
    if not levels:
        levels = measured_levels(dataset, experiment, rule)
        # Other releases of the same server are not its rivals.
        if rule["over"] == "server":
            own = published.releases_of(best["server"])
            levels = [level for level in levels if level not in own]
    side = "above" if rule["direction"] == "highest" else "below"
    for other in (_level(rule, level) for level in levels):
        if other != best:
            yield _pair(dataset, experiment, rule, best, other, side)


def _spread(dataset: str, experiment: str, rule: dict) -> Iterator[Part]:
    selectors = [_level(rule, level) for level in rule["levels"]]
    sides = compared_values(dataset, experiment, rule, selectors)
    if all(sides):
        sides = [_extreme(choose, sides) for choose in (max, min)]
    else:
        hidden = any(side.hidden for side in sides)
        sides = [Values(hidden=hidden), Values(hidden=hidden)]
    claimed = claimed_range(rule["threshold"], rule["direction"])
    yield Part(sides, *claimed, compared=_compared(experiment, rule, *selectors))


def _extreme(choose: Callable, sides: list[Values]) -> Values:
    """Return the largest or smallest value of each block that all sides have."""
    chosen = {
        n: choose(sides, key=lambda side: side.by_block[n])
        for n in sorted(set.intersection(*(side.blocks for side in sides)))
    }
    largest = {n: sides if choose is max else [side] for n, side in chosen.items()}
    smallest = {n: sides if choose is min else [side] for n, side in chosen.items()}
    return Values(
        {n: side.by_block[n] for n, side in chosen.items()},
        # Another side may be more than what is largest, or less than what is smallest.
        at_least=frozenset(n for n in chosen if any(n in side.at_least for side in largest[n])),
        at_most=frozenset(n for n in chosen if any(n in side.at_most for side in smallest[n])),
        kind=sides[0].kind,
        step=max(side.step for side in sides),
    )


def _rank(dataset: str, experiment: str, rule: dict) -> Iterator[Part]:
    """Return Spearman's correlation, taken in each block over the levels, as one part.

    A level of which a value is only a bound has no rank, and is left out.
    """
    sides = [
        compared_values(
            dataset, experiment, rule, [rule[side] | {rule["over"]: level} for level in levels]
        )
        for levels in [measured_levels(dataset, experiment, rule | {"where": rule["a"]})]
        for side in ("a", "b")
    ]
    both = [(a, b) for a, b in zip(*sides, strict=True) if a and b and a.is_exact and b.is_exact]
    if len(both) < 3:
        return
    blocks = sorted(set.intersection(*(a.blocks & b.blocks for a, b in both)))
    ranked = {n: [[side.by_block[n] for side in pair] for pair in zip(*both)] for n in blocks}
    # Ranks need at least two values that differ.
    differ = [n for n in blocks if all(len(set(side)) > 1 for side in ranked[n])]
    correlations = {n: float(spearmanr(*ranked[n]).statistic) for n in differ}
    chance = 1.0
    if differ:
        means = [[fmean(side.by_block[n] for n in differ) for side in pair] for pair in zip(*both)]
        chance = trial_tests.chance_of_order(*means)
    yield Part(
        [Values(correlations or dict.fromkeys(blocks, math.nan), kind=Kind.CORRELATION)],
        *claimed_range(rule["threshold"], rule["direction"]),
        compared=_compared(experiment, rule),
        chance=chance,
    )


def _all(dataset: str, experiment: str, rule: dict) -> Iterator[Part]:
    for part in rule["rules"]:
        parts = list(_parts(dataset, experiment, part))
        # What has no part was not run.
        yield from parts or [Part([Values()], 0, 1)]


_KINDS: dict[str, Callable] = {
    "ratio": _threshold,
    "level": _threshold,
    "within": _within,
    "order": _order,
    "best": _best,
    "spread": _spread,
    "rank": _rank,
    "all": _all,
}
