"""How a verdict is made: values of trials, the interval of a ratio, and the range that is claimed.

In: a statistic by block, of one side or of two. Out: a `Judgement`. The interval is Student's t on
the logarithms, after all trials.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from statistics import median

from deathmatch.analysis import published, sequential, stats
from deathmatch.analysis.interval import NO_TRIAL, Interval
from deathmatch.analysis.values import Values

REPLICATED, NOT, OPEN = "replicated", "not replicated", "inconclusive"
UNREACHED, NOT_RUN = "condition not reached", "not run"
VERDICTS = (REPLICATED, NOT, OPEN, UNREACHED, NOT_RUN)
EMULATED = {word: f"{word}, emulated" for word in (REPLICATED, NOT, OPEN)}
"""The words for verdicts on trials whose CPUs were emulated, which are counted apart."""
MINIMUM_TRIALS = published.minimum_trials()
INFINITE = float("inf")
CLOCK_STEP_US = 100  # of httperf's mean response time

SATURATION = "saturation"
CLIENT = "client"


@dataclass(frozen=True)
class Compared:
    """What a value was taken of: a selector of a rule, in an experiment."""

    rule: dict
    selector: dict
    experiment: str


@dataclass(frozen=True)
class Judgement:
    """A verdict on a rule or on a part of one, with the interval that decides it.

    `direction`: the verdict on the direction alone, where the rule has a size. `lacks`: SATURATION
    or CLIENT, where that kept the data from deciding. `compared`: what was divided by what.
    `spread`: the standard deviation of the ratio's logarithm between trials. `distance`: how far
    the median is from the nearest bound of the claimed range, a logarithm. `margin`: the same of a
    decided verdict's interval. `open`: of a rule that is inconclusive, each such part.
    """

    interval: Interval
    verdict: str
    direction: str | None = None
    lacks: str | None = None
    compared: tuple[Compared, ...] = ()
    spread: float | None = None
    distance: float | None = None
    margin: float = 0
    open: tuple["Judgement", ...] = ()


NOTHING_RAN = Judgement(NO_TRIAL, NOT_RUN)
"""The judgement on what was not measured."""


def _judged(known: Interval, low: float, high: float, minimum: int = MINIMUM_TRIALS) -> Judgement:
    """Compare an interval with the claimed range; too few trials decide nothing."""
    if not known.trials:
        return Judgement(known, NOT_RUN)
    if known.trials < minimum or known.low is None:
        return Judgement(known, OPEN)
    beyond = low < known.low or low == -INFINITE
    if beyond and (known.high < high or high == INFINITE):
        return Judgement(known, REPLICATED, margin=_margin(known, low, high))
    if known.high < low or known.low > high:
        return Judgement(known, NOT, margin=_margin(known, low, high))
    return Judgement(known, OPEN)


def _margin(interval: Interval, low: float, high: float) -> float:
    """Return the distance, as a ratio's logarithm, between an interval and the nearest bound."""
    ends = [(end, bound) for end in (interval.low, interval.high) for bound in (low, high)]
    known = [abs(math.log(a / b)) for a, b in ends if 0 < a < INFINITE and 0 < b < INFINITE]
    return min(known, default=INFINITE)


def opened(known: Interval, above: Values, below: Values, again: Callable) -> Interval:
    """Return an interval without the ends that rates known only "at least" leave open.

    Where it is known what a rate is below, the end is that of `again(above, below)`, the interval
    of other values.
    """
    if known.low is None:
        return known
    low, high = known.low, known.high
    if above.unbounded or below.at_most:
        high = INFINITE
    elif above.at_least:
        high = again(above.highest, below).high
    if above.at_most or below.unbounded:
        low = -INFINITE
    elif below.at_least:
        low = again(above, below.highest).low
    return replace(known, low=low, high=high)


def _blurred(known: Interval, pairs: list[tuple[float, float]], interval: Callable) -> Interval:
    """Return the interval of ratios of rounded times, wide enough for what rounding may hide."""
    if known.low is None:
        return known
    half = CLOCK_STEP_US / 2
    low = interval([(a - half) / (b + half) for a, b in pairs]).low
    if min(b for _, b in pairs) <= half:
        return replace(known, low=low, high=INFINITE)
    return replace(known, low=low, high=interval([(a + half) / (b - half) for a, b in pairs]).high)


def quotient(
    above: Values, below: Values, paired: bool = True, level: float | None = None
) -> Interval:
    """Return the interval of above / below, paired by block by default.

    With `level`, Student's t at it; else the bootstrap's.
    """
    again = partial(_quotient, paired=paired, level=level)
    return opened(again(above, below), above, below, again)


def _quotient(above: Values, below: Values, paired: bool, level: float | None) -> Interval:
    """Return the interval of above / below as if all values were known."""
    if not above or not below:
        return NO_TRIAL
    interval = partial(_interval, level=level)
    if paired and above.blocks & below.blocks:
        blocks = _divisible([above, below])
        pairs = [(above.by_block[n], below.by_block[n]) for n in blocks]
        ratio = interval([a / b for a, b in pairs])
    else:
        pairs = [(a, b) for a in above.all for b in below.all if b]
        count = min(len(above), len(below))
        ratio = replace(stats.interval([a / b for a, b in pairs]), trials=count)
        if level is not None:
            sides = above.all, below.all
            alike = min(map(min, sides)) > 0
            low, high = sequential.unpaired_interval(*sides, level) if alike else (None, None)
            ratio = replace(ratio, low=low, high=high)
    if above.rounded:
        ratio = _blurred(ratio, pairs, interval)
    return ratio


def _interval(values: list[float], level: float | None, exact: bool = False) -> Interval:
    """Return the interval of one value a trial: the bootstrap's, or Student's t at a level.

    With `exact`, the exact interval of outcomes.
    """
    if level is None or len(values) < 2:
        return stats.interval(values)
    low, high = (sequential.share_interval if exact else sequential.interval)(values, level)
    return Interval(len(values), median(values), low, high)


def _divisible(sides: list[Values]) -> list[int]:
    """Return the blocks that all sides have, without those in which the second is 0."""
    shared = sorted(set.intersection(*(side.blocks for side in sides)))
    return [n for n in shared if len(sides) == 1 or sides[1].by_block[n]]


def tested(sides: list[Values], low: float, high: float, paired: bool = True) -> Judgement:
    """Return the part that holds a / b, or a alone, against the claimed range."""
    usable = _divisible(sides)
    together = (paired or len(sides) == 1) and usable
    count = len(usable) if together else min(map(len, sides))
    return _looked_at(sides, low, high, paired, sequential.ERROR if count > 1 else None)


def by_medians(sides: list[Values], low: float, high: float, paired: bool = True) -> Judgement:
    """Return the part that the medians alone give, of however few trials: no error is known."""
    return explained(_judged(_without_spread(sides, paired), low, high, minimum=1), *sides)


def _looked_at(
    sides: list[Values], low: float, high: float, paired: bool, level: float | None = None
) -> Judgement:
    """Return the part at a level; without one, by the bootstrap."""
    known = quotient(*sides, paired, level) if len(sides) == 2 else value(*sides, level)
    part = _judged(known, low, high)
    # The load is the limit only where more trials could not decide.
    endless = replace(_without_spread(sides, paired), trials=known.trials)
    if level is None or _judged(endless, low, high).verdict == OPEN:
        part = explained(part, *sides)
    return replace(
        part, spread=_spread_of(sides, paired), distance=_distance(known.estimate, low, high)
    )


def value(side: Values, level: float | None = None) -> Interval:
    """Return the interval of one side alone.

    With `level`, Student's t at it, or the exact interval of outcomes; else the bootstrap's.
    """

    def again(above: Values, _below: Values) -> Interval:
        return _interval(above.all, level, above.outcome)

    return opened(again(side, side), side, Values(), again)


def _without_spread(sides: list[Values], paired: bool) -> Interval:
    """Return the interval that trials would have of which all had the median."""
    above, below = (*sides, Values())[:2]

    def middle(above: Values, below: Values) -> Interval:
        alone = len(sides) == 1
        known = stats.interval(above.all) if alone else _quotient(above, below, paired, None)
        return replace(known, low=known.estimate, high=known.estimate)

    return opened(middle(above, below), above, below, middle)


def _spread_of(sides: list[Values], paired: bool) -> float | None:
    """Return the standard deviation, between trials, of the logarithm of what is compared."""
    if len(sides) == 1:
        return sequential.spread(sides[0].all)
    above, below = sides
    if paired and _divisible(sides):
        return sequential.spread(above.over(below).all)
    apart = [sequential.spread(side.all) for side in sides]
    return None if None in apart else math.hypot(*apart)


def _distance(middle: float | None, low: float, high: float) -> float | None:
    """Return how far a median is, as a logarithm, from the nearest bound; None without one."""
    bounds = [bound for bound in (low, high) if 0 < bound < INFINITE]
    if not middle or middle <= 0:
        return None
    return min((abs(math.log(middle / bound)) for bound in bounds), default=None)


def explained(part: Judgement, *sides: Values) -> Judgement:
    """Return a part with what kept its data from deciding: then it is a condition not reached."""
    if part.verdict == NOT_RUN and any(side.hidden for side in sides):
        return replace(part, verdict=UNREACHED, lacks=CLIENT)
    # With fewer trials nobody knows what more would decide.
    open_ended = [side for side in sides if len(side) >= MINIMUM_TRIALS and side.at_least]
    if part.verdict == OPEN and open_ended:
        return replace(part, verdict=UNREACHED, lacks=SATURATION)
    return part


def claimed_range(threshold: float, direction: str) -> tuple[float, float]:
    """Return the range on one side of a threshold."""
    return (threshold, INFINITE) if direction == "above" else (-INFINITE, threshold)
