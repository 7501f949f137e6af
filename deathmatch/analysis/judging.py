"""How a verdict is found: values of trials, the interval of a ratio, and the range that is claimed.

In: a statistic by block, of one side or of two. Out: a part of a verdict, a dict with the keys of
`judgement`. The interval is Student's t on the logarithms, after all trials.
"""

import math
from collections.abc import Callable
from functools import partial
from statistics import median

from deathmatch.analysis import published, sequential, stats
from deathmatch.analysis.values import Values

REPLICATED, NOT, OPEN = "replicated", "not replicated", "inconclusive"
UNREACHED, NOT_RUN = "condition not reached", "not run"
VERDICTS = (REPLICATED, NOT, OPEN, UNREACHED, NOT_RUN)
MINIMUM_TRIALS = published.minimum_trials()
INFINITE = float("inf")
CLOCK_STEP_US = 100  # of httperf's mean response time

SATURATION = "saturation"
CLIENT = "client"


def not_run() -> dict:
    """Return the judgement on what was not measured."""
    return judgement(stats.interval([]), NOT_RUN)


def judgement(found: dict, verdict: str, **more) -> dict:
    """Return an interval with its verdict, and what else `rules.decide` reports of a part."""
    known = {"verdict": verdict, "direction": None, "lacks": None, "compared": []}
    return found | known | {"spread": None, "distance": None, "open": []} | more


def _judged(found: dict, low: float, high: float, minimum: int = MINIMUM_TRIALS) -> dict:
    """Compare an interval with the claimed range; too few trials decide nothing."""
    if not found["trials"]:
        return judgement(found, NOT_RUN)
    if found["trials"] < minimum or found["low"] is None:
        return judgement(found, OPEN)
    beyond = low < found["low"] or low == -INFINITE
    if beyond and (found["high"] < high or high == INFINITE):
        return judgement(found, REPLICATED, margin=_margin(found, low, high))
    if found["high"] < low or found["low"] > high:
        return judgement(found, NOT, margin=_margin(found, low, high))
    return judgement(found, OPEN)


def _margin(found: dict, low: float, high: float) -> float:
    """Return the distance, as a ratio's logarithm, between an interval and the nearest bound."""
    ends = [(found["low"], low), (found["high"], high), (found["high"], low), (found["low"], high)]
    known = [abs(math.log(a / b)) for a, b in ends if 0 < a < INFINITE and 0 < b < INFINITE]
    return min(known, default=INFINITE)


def opened(found: dict, above: Values, below: Values) -> dict:
    """Return an interval without the ends that rates known only "at least" leave open."""
    if found["low"] is None:
        return found
    more, less = above.at_least or below.at_most, above.at_most or below.at_least
    return found | ({"high": INFINITE} if more else {}) | ({"low": -INFINITE} if less else {})


def _blurred(found: dict, pairs: list[tuple[float, float]], interval: Callable) -> dict:
    """Return the interval of ratios of rounded times, wide enough for what rounding may hide."""
    if found["low"] is None:
        return found
    half = CLOCK_STEP_US / 2
    least = interval([(a - half) / (b + half) for a, b in pairs])
    if min(b for _, b in pairs) <= half:
        return found | {"low": least["low"], "high": INFINITE}
    most = interval([(a + half) / (b - half) for a, b in pairs])
    return found | {"low": least["low"], "high": most["high"]}


def quotient(above: Values, below: Values, paired: bool = True, level: float | None = None) -> dict:
    """Return the interval of above / below, paired by block by default.

    With `level`, Student's t at it; else the bootstrap's.
    """
    if not above or not below:
        return stats.interval([])
    interval = partial(_interval, level=level)
    if paired and above.blocks & below.blocks:
        blocks = _divisible([above, below])
        pairs = [(above.by_block[n], below.by_block[n]) for n in blocks]
        found = interval([a / b for a, b in pairs])
    else:
        pairs = [(a, b) for a in above.all for b in below.all if b]
        found = stats.interval([a / b for a, b in pairs]) | {"trials": min(len(above), len(below))}
        if level is not None:
            sides = above.all, below.all
            alike = min(map(min, sides)) > 0
            low, high = sequential.unpaired_interval(*sides, level) if alike else (None, None)
            found |= {"low": low, "high": high}
    if above.rounded:
        found = _blurred(found, pairs, interval)
    return opened(found, above, below)


def _interval(values: list[float], level: float | None, exact: bool = False) -> dict:
    """Return the interval of one value a trial: the bootstrap's, or Student's t at a level.

    Of outcomes, with `exact`, the exact one.
    """
    if level is None or len(values) < 2:
        return stats.interval(values)
    low, high = (sequential.share_interval if exact else sequential.interval)(values, level)
    return {"trials": len(values), "median": median(values), "low": low, "high": high}


def _divisible(sides: list[Values]) -> list[int]:
    """Return the blocks that all sides have, without those in which the second is 0."""
    shared = sorted(set.intersection(*(side.blocks for side in sides)))
    return [n for n in shared if len(sides) == 1 or sides[1].by_block[n]]


def tested(sides: list[Values], low: float, high: float, paired: bool = True) -> dict:
    """Return the part that holds a / b, or a alone, against the claimed range."""
    usable = _divisible(sides)
    together = (paired or len(sides) == 1) and usable
    count = len(usable) if together else min(map(len, sides))
    return _looked_at(sides, low, high, paired, sequential.ERROR if count > 1 else None)


def by_medians(sides: list[Values], low: float, high: float, paired: bool = True) -> dict:
    """Return the part that the medians alone give, of however few trials: no error is known."""
    above, below = (*sides, Values())[:2]
    alone = len(sides) == 1
    found = stats.interval(above.all) if alone else quotient(above, below, paired)
    point = found | {"low": found["median"], "high": found["median"]}
    return explained(_judged(opened(point, above, below), low, high, minimum=1), *sides)


def _looked_at(
    sides: list[Values], low: float, high: float, paired: bool, level: float | None = None
) -> dict:
    """Return the part at a level; without one, by the bootstrap."""
    if len(sides) == 2:
        found = quotient(*sides, paired, level)
    else:
        [side] = sides
        found = opened(_interval(side.all, level, side.outcome), side, Values())
    part = _judged(found, low, high)
    # What more trials can still decide is no limit of the load's.
    by_load = level is None or _judged(_without_spread(found), low, high)["verdict"] == OPEN
    return (explained(part, *sides) if by_load else part) | {
        "spread": _spread_of(sides, paired),
        "distance": _distance(found, low, high),
    }


def _without_spread(found: dict) -> dict:
    """Return the interval that so many trials would have that all had the median."""
    known = {end: found[end] for end in ("low", "high") if found[end] in (INFINITE, -INFINITE)}
    return found | {"low": found["median"], "high": found["median"]} | known


def _spread_of(sides: list[Values], paired: bool) -> float | None:
    """Return the standard deviation, between trials, of the logarithm of what is compared."""
    if len(sides) == 1:
        return sequential.spread(sides[0].all)
    above, below = sides
    if paired and _divisible(sides):
        return sequential.spread(above.over(below).all)
    apart = [sequential.spread(side.all) for side in sides]
    return None if None in apart else math.hypot(*apart)


def _distance(found: dict, low: float, high: float) -> float | None:
    """Return how far the median is, as a logarithm, from the nearest bound; None without one."""
    bounds = [bound for bound in (low, high) if 0 < bound < INFINITE]
    if not found["median"] or found["median"] <= 0:
        return None
    return min((abs(math.log(found["median"] / bound)) for bound in bounds), default=None)


def explained(part: dict, *sides: Values) -> dict:
    """Return a part with what kept its data from deciding: then it is a condition not reached."""
    if part["verdict"] == NOT_RUN and any(side.hidden for side in sides):
        return part | {"verdict": UNREACHED, "lacks": CLIENT}
    # Nobody knows what more trials would decide where there are fewer.
    open_ended = [side for side in sides if len(side) >= MINIMUM_TRIALS and side.at_least]
    if part["verdict"] == OPEN and open_ended:
        return part | {"verdict": UNREACHED, "lacks": SATURATION}
    return part


def claimed_range(threshold: float, direction: str) -> tuple[float, float]:
    """Return the range on one side of a threshold."""
    return (threshold, INFINITE) if direction == "above" else (-INFINITE, threshold)
