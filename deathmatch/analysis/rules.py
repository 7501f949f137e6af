"""How one rule of claims.toml is decided on a dataset.

A statistic is first taken of each trial (`selecting`), by block, the trial's number; ratios are
paired within a block. The header of `data/published/claims.toml` says how each kind of rule is
decided.
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace

from scipy.stats import spearmanr

from deathmatch.analysis import judging, published, stats
from deathmatch.analysis.interval import Interval
from deathmatch.analysis.judging import (
    CLIENT,
    MINIMUM_TRIALS,
    NOT,
    NOT_RUN,
    NOTHING_RAN,
    OPEN,
    REPLICATED,
    SATURATION,
    UNREACHED,
    Compared,
    Judgement,
    claimed_range,
    explained,
    quotient,
    value,
)
from deathmatch.analysis.selecting import (
    compared_servers,
    compared_values,
    measured_levels,
    selected,
    values,
)
from deathmatch.analysis.values import Values

# A rule with several parts has the first of these verdicts that a part has.
_DECISIVE = (NOT, NOT_RUN, UNREACHED, OPEN, REPLICATED)


def decide(dataset: str, experiment: str, rule: dict) -> Judgement:
    """Return the judgement on one rule, with the interval of the part that decides it."""
    parts = list(_PARTS[rule["kind"]](dataset, experiment, rule))
    if not parts:
        return NOTHING_RAN
    # The clearest part that refutes; of a rule that holds, the part that holds most narrowly.
    worst = min((part.verdict for part in parts), key=_DECISIVE.index)
    sign = -1 if worst == NOT else 1
    least = [part for part in parts if part.verdict == worst]
    decisive = min(least, key=lambda part: sign * part.margin)
    known = [part.direction for part in parts]
    direction = None if None in known else min(known, key=_DECISIVE.index)
    undecided = [inner for part in parts for inner in part.open or [part]]
    still_open = tuple(part for part in undecided if part.verdict == OPEN)
    return replace(decisive, direction=direction, open=still_open)


@contextmanager
def by_medians() -> Iterator[None]:
    """Decide by medians alone, whatever the number of trials and the spread between them."""
    token = _BY_MEDIANS.set(True)
    try:
        yield
    finally:
        _BY_MEDIANS.reset(token)


_BY_MEDIANS = ContextVar("by_medians", default=False)


def _tested(sides: list[Values], low: float, high: float, paired: bool = True) -> Judgement:
    """Return the part that compares a / b, or a alone, against the claimed range."""
    if _BY_MEDIANS.get():
        return judging.by_medians(sides, low, high, paired)
    return judging.tested(sides, low, high, paired)


def compared(dataset: str, experiment: str, rule: dict) -> Interval:
    """Return the interval of a / b, or of a alone."""
    sides, same = _sides(dataset, experiment, rule)
    if len(sides) == 1:
        return value(*sides)
    return quotient(*sides, paired=same)


def _sides(dataset: str, experiment: str, rule: dict) -> tuple[list[Values], bool]:
    """Return the values of a, and of b if there is one; and whether they are paired by block."""
    selectors = [rule[side] for side in ("a", "b") if side in rule]
    same = len({selector.get("experiment", experiment) for selector in selectors}) == 1
    return compared_values(dataset, experiment, rule, selectors, paired=same), same


def _compared(experiment: str, rule: dict, *selectors: dict) -> tuple[Compared, ...]:
    """Return what was compared: of these selectors, or of the rule's own a and b."""
    chosen = selectors or [rule[side] for side in ("a", "b") if side in rule]
    return tuple(Compared(rule, selector, experiment) for selector in chosen)


def _threshold(dataset: str, experiment: str, rule: dict) -> Iterator[Judgement]:
    for chosen in _at_each_level(dataset, experiment, rule):
        sides, same = _sides(dataset, experiment, chosen)
        part = _tested(sides, *claimed_range(rule["threshold"], rule["direction"]), same)
        yield replace(part, compared=_compared(experiment, chosen))


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
        levels = set(compared_servers(frame, rule["each"])[rule["each"]])
        common = levels if common is None else common & levels
    return [
        rule | {side: rule[side] | {rule["each"]: level} for side in sides}
        for level in sorted(common or set())
    ]


def _within(dataset: str, experiment: str, rule: dict) -> Iterator[Judgement]:
    sides, same = _sides(dataset, experiment, rule)
    part = _tested(sides, rule["low"], rule["high"], same)
    direction = None
    if "b" in rule and (rule["low"] >= 1 or rule["high"] <= 1):
        above = claimed_range(1, "above" if rule["low"] >= 1 else "below")
        alone = _tested(sides, *above, same)
        # A verdict on the direction alone names no condition.
        plain = {SATURATION: OPEN, CLIENT: NOT_RUN}
        direction = plain.get(alone.lacks, alone.verdict)
    yield replace(part, compared=_compared(experiment, rule), direction=direction)


def _level(rule: dict, level) -> dict:
    chosen = level if isinstance(level, dict) else {rule["over"]: level}
    return rule.get("where", {}) | chosen


def _pair(
    dataset: str, experiment: str, rule: dict, above: dict, below: dict, side: str
) -> Judgement:
    sides = compared_values(dataset, experiment, rule, [above, below])
    part = _tested(sides, *claimed_range(1, side))
    return replace(part, compared=_compared(experiment, rule, above, below))


def _order(dataset: str, experiment: str, rule: dict) -> Iterator[Judgement]:
    levels = [_level(rule, level) for level in rule["ascending"]]
    for lower, higher in itertools.pairwise(levels):
        yield _pair(dataset, experiment, rule, higher, lower, "above")


def _best(dataset: str, experiment: str, rule: dict) -> Iterator[Judgement]:
    best = _level(rule, rule["level"])
    levels = rule.get("levels")
    if not levels:
        levels = measured_levels(dataset, experiment, rule)
        # Other releases of the same server are not its rivals.
        if rule["over"] == "server":
            own = published.releases_of(best["server"])
            levels = [level for level in levels if level not in own]
    mine = values(dataset, experiment, rule, best)
    for level in levels:
        other = _level(rule, level)
        if other == best:
            continue
        theirs = values(dataset, experiment, rule, other)
        if rule["direction"] == "highest" and theirs and _never(mine):
            # 0 in each trial is not more than anything.
            verdict = NOT if len(mine) >= MINIMUM_TRIALS else OPEN
            known = stats.interval(mine.all)
            yield Judgement(known, verdict, compared=_compared(experiment, rule, best))
            continue
        side = "above" if rule["direction"] == "highest" else "below"
        yield _pair(dataset, experiment, rule, best, other, side)


def _never(values: Values) -> bool:
    return bool(values) and not any(values.all)


def _spread(dataset: str, experiment: str, rule: dict) -> Iterator[Judgement]:
    selectors = [_level(rule, level) for level in rule["levels"]]
    sides = compared_values(dataset, experiment, rule, selectors)
    if not all(sides):
        yield explained(NOTHING_RAN, *sides)
        return
    extremes = [_extreme(choose, sides) for choose in (max, min)]
    part = _tested(extremes, *claimed_range(rule["threshold"], rule["direction"]))
    yield replace(part, compared=_compared(experiment, rule, *selectors))


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
        rounded=any(side.rounded for side in sides),
    )


def _rank(dataset: str, experiment: str, rule: dict) -> Iterator[Judgement]:
    """Judge the interval of Spearman's correlation, taken in each block over the levels.

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
        yield NOTHING_RAN
        return
    blocks = set.intersection(*(a.blocks & b.blocks for a, b in both))
    correlations = {}
    for n in sorted(blocks):
        ranked = [[side.by_block[n] for side in pair] for pair in zip(*both, strict=True)]
        # Ranks need at least two values that differ.
        if all(len(set(side)) > 1 for side in ranked):
            correlations[n] = float(spearmanr(*ranked).statistic)
    claimed = claimed_range(rule["threshold"], rule["direction"])
    none = Judgement(Interval(len(blocks)), OPEN)
    part = _tested([Values(correlations)], *claimed) if correlations else none
    yield replace(part, compared=_compared(experiment, rule))


def _all(dataset: str, experiment: str, rule: dict) -> Iterator[Judgement]:
    for part in rule["rules"]:
        yield decide(dataset, experiment, part)


_PARTS: dict[str, Callable] = {
    "ratio": _threshold,
    "level": _threshold,
    "within": _within,
    "order": _order,
    "best": _best,
    "spread": _spread,
    "rank": _rank,
    "all": _all,
}
