"""Verdicts from the values of trials, the interval of their ratio, and the claimed range.

In: the parts of a rule, each a statistic by block of one side or of two. Out: a `Judgement`, by the
tests of `trial_tests`, after all trials.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median

from deathmatch.analysis import stats, trial_tests
from deathmatch.analysis.by_trial import Values
from deathmatch.analysis.comparison import INFINITE, Comparison
from deathmatch.analysis.stats import NO_TRIAL, Interval
from deathmatch.analysis.trial_tests import ERROR
from deathmatch.quantities.quantity import Kind

REPLICATED, NOT, OPEN = "replicated", "not replicated", "inconclusive"
UNREACHED, NOT_RUN = "condition not reached", "not run"
VERDICTS = (REPLICATED, NOT, OPEN, UNREACHED, NOT_RUN)
DECIDED = frozenset({REPLICATED, NOT})
"""The verdicts that decide a claim."""
TESTED = DECIDED | {OPEN}
"""The verdicts that a test gave."""
LARGER, SMALLER = "larger than claimed", "smaller than claimed"
"""Verdicts on a direction that holds, where the claimed size does not."""
MINIMUM_TRIALS = 3
"""With fewer trials nothing is decided."""

SATURATION = "saturation"
CLIENT = "client"
DURATION = "duration"

# A rule has the first of these verdicts that one of its parts has.
_DECISIVE = (NOT, NOT_RUN, UNREACHED, OPEN, SMALLER, LARGER, REPLICATED)
_HALF = (0.5, INFINITE)
"""The range of a share of trials that is more than half."""
# The factor of precision of the search for the smallest level that still decides.
_LEVEL_STEP = 1.05
_SMALLEST_LEVEL = 1e-9


@dataclass(frozen=True)
class Part:
    """One comparison of a rule: a / b, or a alone, against the range from `low` to `high`.

    `paired`: by block. `comparison`: the one that `sides` are values of.
    """

    sides: Sequence[Values]
    low: float
    high: float
    paired: bool = True
    comparison: Comparison | None = None

    @property
    def direction(self) -> tuple[float, float] | None:
        """The range of a ratio's direction alone; None if the rule has no size or no direction."""
        above, below = claimed_range(1, "above"), claimed_range(1, "below")
        if len(self.sides) == 1 or (self.low, self.high) in (above, below):
            return None
        return above if self.low >= 1 else below if self.high <= 1 else None


@dataclass(frozen=True)
class Judgement:
    """A verdict on a rule or on a part of one, with the interval that decides it.

    `as_claimed`: the interval is of the share of trials in which the value is as claimed.
    `direction`: the verdict on the direction alone, if the rule has a size; LARGER or SMALLER if
    the direction holds and the size does not. `lacks`: SATURATION, CLIENT or DURATION, if that kept
    the data from deciding. `part`: the part that was judged. `spread`: the standard deviation
    between trials on the scale of the test, a logarithm for ratios; `on_edge`: the estimate is
    nearer than that to a bound of the claimed range, so another measurement may fall on either
    side. `parts`: those of the rule.
    """

    interval: Interval
    verdict: str
    as_claimed: bool = False
    direction: str | None = None
    lacks: str | None = None
    part: Part | None = None
    spread: float | None = None
    on_edge: bool = False
    parts: tuple[Part, ...] = ()


NOTHING_RAN = Judgement(NO_TRIAL, NOT_RUN)
"""The judgement without a measurement."""


def together(parts: Sequence[Part]) -> Judgement:
    """Return the judgement on a rule of these parts, with the interval of the decisive part.

    A rule holds if each part does, each at the full level (intersection-union test, Berger 1982).
    One part refutes it, at the level over the number of parts (Bonferroni), so that several parts
    do not refute more often by chance than one.
    """
    if not parts:
        return NOTHING_RAN
    judged = [tested(part, len(parts)) for part in parts]
    # The part that refutes most clearly; if the rule holds, the part that holds most narrowly.
    worst = min((part.verdict for part in judged), key=_DECISIVE.index)
    sign = -1 if worst == NOT else 1
    decisive = min(
        (one for one in zip(judged, parts) if one[0].verdict == worst),
        key=lambda one: sign * _margin(*one),
    )[0]
    known = [part.direction for part in judged]
    direction = None if None in known else min(known, key=_DECISIVE.index)
    return replace(decisive, direction=direction, parts=tuple(parts))


def tested(part: Part, family: int = 1) -> Judgement:
    """Return the judgement on one of `family` parts of a rule, after all trials."""
    judged = _directed(part, ERROR)
    if judged.verdict != REPLICATED and family > 1:
        judged = _directed(part, ERROR / family)
    return judged


def error(judgement: Judgement) -> float | None:
    """Return the smallest level at which a verdict would still stand; None if it decides nothing.

    This is the p-value of the rule: the largest of its parts' if the rule holds, else the smallest
    times their number.
    """
    if judgement.verdict == REPLICATED:
        return max(_smallest_level(part, REPLICATED) for part in judgement.parts)
    if judgement.verdict != NOT:
        return None
    refuting = [_smallest_level(part, NOT) for part in judgement.parts]
    return min(1.0, len(judgement.parts) * min(refuting))


def _smallest_level(part: Part, verdict: str) -> float:
    """Return the smallest level at which a part has a verdict; 1 if it has it at no level."""
    low, high = _SMALLEST_LEVEL, ERROR
    if _at(part, high).verdict != verdict:
        return 1.0
    while high / low > _LEVEL_STEP:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if _at(part, middle).verdict == verdict else (middle, high)
    return high


def _directed(part: Part, level: float) -> Judgement:
    """Return the judgement at a level, with the direction of a rule that has a size."""
    judged = _at(part, level)
    direction = None
    if part.direction:
        low, high = part.direction
        alone = _at(replace(part, low=low, high=high), level)
        # A verdict on the direction alone names no condition.
        plain = {SATURATION: OPEN, CLIENT: NOT_RUN, DURATION: NOT_RUN}
        direction = plain.get(alone.lacks, alone.verdict)
        if direction == REPLICATED and judged.verdict == NOT and not judged.as_claimed:
            beyond = judged.interval.low > part.high
            direction = LARGER if beyond == (high == INFINITE) else SMALLER
    return replace(judged, direction=direction, part=part)


def _at(part: Part, level: float) -> Judgement:
    """Return the judgement at a level, without its direction."""
    if any(math.isnan(value) for side in part.sides for value in side.all):
        return Judgement(Interval(len(part.sides[0])), OPEN)
    if _is_exact(part):
        return _exact(part, level)
    known = effect(part.sides, part.paired, level)
    judged = _judged(known, part.low, part.high)
    # The load is the limit only if more trials could not decide.
    endless = replace(_without_spread(part), trials=known.trials)
    if known.trials < 2 or _judged(endless, part.low, part.high).verdict == OPEN:
        judged = explained(judged, *part.sides)
    spread = _spread_of(part)
    on_edge = spread is not None and _distance(known.estimate, part) < spread
    return replace(judged, spread=spread, on_edge=on_edge)


def _judged(known: Interval, low: float, high: float) -> Judgement:
    """Compare an interval with the claimed range; too few trials decide nothing."""
    if not known.trials:
        return Judgement(known, NOT_RUN)
    if known.trials < MINIMUM_TRIALS or known.low is None:
        return Judgement(known, OPEN)
    beyond = low < known.low or low == -INFINITE
    if beyond and (known.high < high or high == INFINITE):
        return Judgement(known, REPLICATED)
    if known.high < low or known.low > high:
        return Judgement(known, NOT)
    return Judgement(known, OPEN)


def _margin(judged: Judgement, part: Part) -> float:
    """Return the distance between an interval and the nearest bound of what is claimed."""
    low, high = _HALF if judged.as_claimed else (part.low, part.high)
    ends = [(end, bound) for end in (judged.interval.low, judged.interval.high)
            for bound in (low, high) if end is not None]  # fmt: skip
    return min((trial_tests.distance(end, bound) for end, bound in ends), default=INFINITE)


def _is_exact(part: Part) -> bool:
    """Return whether t has no scale or no spread for a part, so that trials as claimed count."""
    kinds = {side.kind for side in part.sides}
    if Kind.COUNT in kinds:
        return True
    if Kind.OUTCOME in kinds:
        return False
    has_step = any(side.step for side in part.sides)
    if len(part.sides) == 1:
        values, kind = part.sides[0].all, part.sides[0].kind
    elif _together(part) and not has_step:
        values, kind = _all_quotients(part.sides), Kind.POSITIVE
    else:
        return False
    alike = len(values) > 1 and len(set(values)) == 1 and not has_step
    return alike or not trial_tests.has_scale(values, kind)


def _exact(part: Part, level: float) -> Judgement:
    """Return the judgement by the share of trials in which the value is as claimed."""
    values = part.sides[0].all if len(part.sides) == 1 else _all_quotients(part.sides)
    if not values:
        return explained(NOTHING_RAN, *part.sides)
    # A quotient over 0 is infinite, so it is above any threshold.
    below_high = [value < part.high or part.high == INFINITE for value in values]
    as_claimed = [float(part.low < value and below) for value, below in zip(values, below_high)]
    known = trial_tests.share_interval(as_claimed, level)
    # Values that are bounds cannot be counted as claimed or not.
    bounded = any(side.at_least or side.at_most for side in part.sides)
    judged = Judgement(known, OPEN) if bounded else _judged(known, *_HALF)
    judged = explained(judged, *part.sides)
    return replace(judged, as_claimed=True)


def _all_quotients(sides: Sequence[Values]) -> list[float]:
    """Return a / b of each block; infinite over 0, and 1 where both are 0."""
    pairs = [(sides[0].by_block[n], sides[1].by_block[n]) for n in _shared(sides)]
    return [a / b if b else INFINITE if a else 1.0 for a, b in pairs]


def opened(known: Interval, above: Values, below: Values) -> Interval:
    """Return an interval without the ends that values known only as bounds leave open."""
    if known.low is None:
        return known
    low = -INFINITE if above.at_most or below.at_least else known.low
    high = INFINITE if above.at_least or below.at_most else known.high
    return replace(known, low=low, high=high)


def _blurred(
    known: Interval,
    pairs: list[tuple[float, float]],
    steps: tuple[float, float],
    interval: Callable,
) -> Interval:
    """Return the interval of ratios of rounded times, widened by the rounding."""
    if known.low is None:
        return known
    over, under = (step / 2 for step in steps)
    low = interval([(a - over) / (b + under) for a, b in pairs]).low
    if min(b for _, b in pairs) <= under:
        return replace(known, low=low, high=INFINITE)
    return replace(known, low=low, high=interval([(a + over) / (b - under) for a, b in pairs]).high)


def effect(sides: Sequence[Values], paired: bool = True, level: float | None = None) -> Interval:
    """Return the interval of a / b, paired by block by default, or of a alone.

    With `level`, the mean and its interval by `trial_tests`; else the median and the bootstrap's.
    """
    above, below = (*sides, Values())[:2]
    interval = _value if len(sides) == 1 else _quotient
    return opened(interval(above, below, paired, level), above, below)


def _value(side: Values, _below: Values, paired: bool, level: float | None) -> Interval:
    """Return the interval of one side as if all values were known."""
    if level is None or not side:
        return stats.interval(side.all)
    if side.kind == Kind.OUTCOME:
        return trial_tests.share_interval(side.all, level)
    return trial_tests.mean_interval(side.all, level, side.kind, side.step)


def _quotient(above: Values, below: Values, paired: bool, level: float | None) -> Interval:
    """Return the interval of above / below as if all values were known."""
    if not above or not below:
        return NO_TRIAL
    sides = (above, below)
    if paired and above.blocks & below.blocks:
        interval = partial(_of_ratios, level=level)
        ratio, steps = interval(_quotients(sides, paired)), (above.step, below.step)
        return _blurred(ratio, _pairs(sides), steps, interval) if any(steps) else ratio
    if level is not None and min(above.all + below.all) > 0:
        return trial_tests.unpaired_interval(above.all, below.all, level)
    known = stats.interval(_quotients(sides, paired))
    unknown = {} if level is None else {"low": None, "high": None}
    return replace(known, trials=min(len(above), len(below)), **unknown)


def _of_ratios(ratios: list[float], level: float | None) -> Interval:
    if level is None:
        return stats.interval(ratios)
    if not trial_tests.has_scale(ratios, Kind.POSITIVE):
        return replace(stats.interval(ratios), low=0, high=INFINITE)
    return trial_tests.mean_interval(ratios, level)


def _shared(sides: Sequence[Values]) -> list[int]:
    """Return the blocks that all sides have."""
    return sorted(set.intersection(*(side.blocks for side in sides)))


def _pairs(sides: Sequence[Values]) -> list[tuple[float, float]]:
    """Return both values of each block in which the second is not 0."""
    above, below = sides
    return [(above.by_block[n], below.by_block[n]) for n in _shared(sides) if below.by_block[n]]


def _quotients(sides: Sequence[Values], paired: bool) -> list[float]:
    """Return a / b of each common block; of all pairs of trials if blocks are not compared."""
    if paired and _shared(sides):
        return [a / b for a, b in _pairs(sides)]
    return [a / b for a in sides[0].all for b in sides[1].all if b]


def _together(part: Part) -> bool:
    """Return whether the two sides of a part are compared block by block."""
    return part.paired and bool(_shared(part.sides))


def _without_spread(part: Part) -> Interval:
    """Return the interval if all trials had the median."""
    above, below = (*part.sides, Values())[:2]
    values = above.all if len(part.sides) == 1 else _quotients(part.sides, part.paired)
    if not values:
        return NO_TRIAL
    count = min(len(side) for side in part.sides)
    return opened(Interval(count, *[median(values)] * 3), above, below)


def _spread_of(part: Part) -> float | None:
    """Return the standard deviation of the comparison between trials, on its scale."""
    if len(part.sides) == 1:
        return trial_tests.spread(part.sides[0].all, part.sides[0].kind)
    if _together(part):
        return trial_tests.spread(_quotients(part.sides, part.paired))
    apart = [trial_tests.spread(side.all) for side in part.sides]
    return None if None in apart else math.hypot(*apart)


def _distance(estimate: float | None, part: Part) -> float:
    """Return how far an estimate is from the nearest bound, on its scale; infinite without one."""
    if estimate is None:
        return INFINITE
    kind = part.sides[0].kind if len(part.sides) == 1 else Kind.POSITIVE
    return min(trial_tests.distance(estimate, bound, kind) for bound in (part.low, part.high))


def explained(judged: Judgement, *sides: Values) -> Judgement:
    """Return a judgement with what kept its data from deciding: a condition not reached."""
    if judged.verdict == NOT_RUN and any(side.hidden for side in sides):
        return replace(judged, verdict=UNREACHED, lacks=CLIENT)
    if judged.verdict == NOT_RUN and any(side.short for side in sides):
        return replace(judged, verdict=UNREACHED, lacks=DURATION)
    # With fewer trials it is unknown whether more would decide.
    open_ended = [side for side in sides if len(side) >= MINIMUM_TRIALS and side.at_least]
    if judged.verdict == OPEN and open_ended:
        return replace(judged, verdict=UNREACHED, lacks=SATURATION)
    return judged


def claimed_range(threshold: float, direction: str) -> tuple[float, float]:
    """Return the range on one side of a threshold."""
    return (threshold, INFINITE) if direction == "above" else (-INFINITE, threshold)
