"""Up-and-down trials: a step down after each that is over, a step up after each that is not.

Their levels gather near the one at which half of them are over (Dixon and Mood 1948, A Method for
Obtaining and Analyzing Sensitivity Data, Journal of the American Statistical Association 43).
Levels are rates, and a step is a ratio. Pure.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, pvariance

STEP = 1.02
# Dixon and Mood: the deviation of a single trial from the levels' variance, both in steps; below
# such a variance the levels do not tell it, and it is taken for the largest that fits.
SCALE, SHIFT, LEAST_VARIANCE = 1.62, 0.029, 0.3
# Student's t for the 22 trials or so that are left of 24; 0.975 of it on either side.
T = 2.07
# A knee that is sharper than a step lies anywhere between two levels.
RESOLUTION = 0.5


@dataclass(frozen=True)
class Estimate:
    """The rate at which half are over, its 95 % interval, and how far the trials drifted.

    `drift` is the mean level of the later half over that of the earlier half, as a ratio.
    """

    rate_rps: float
    low_rps: float
    high_rps: float
    drift: float


def after(rate_rps: float, over: bool) -> float:
    """Return the next rate."""
    return rate_rps / STEP if over else rate_rps * STEP


def estimate(rates_rps: Sequence[float], over: Sequence[bool]) -> Estimate | None:
    """Return what the trials tell, in their order; None if all of them ended alike.

    The mean of the levels from the trial before the first change on, with the one that would come
    next (Brownlee, Hodges and Rosenblatt 1953, The Up-and-Down Method with Small Samples, Journal
    of the American Statistical Association 48). Its standard error is that of as many trials of a
    normal variable of Dixon and Mood's deviation, of which one outcome has half.
    """
    change = next((place for place, outcome in enumerate(over) if outcome != over[0]), None)
    if change is None:
        return None
    used = [*rates_rps[change - 1 :], after(rates_rps[-1], over[-1])]
    levels = [math.log(rate) / math.log(STEP) for rate in used]
    half = len(levels) // 2
    deviation = SCALE * (max(pvariance(levels), LEAST_VARIANCE) + SHIFT)
    width = max(RESOLUTION, T * deviation * math.sqrt(2 / len(levels)))
    middle = fmean(levels)
    return Estimate(
        STEP**middle, STEP ** (middle - width), STEP ** (middle + width),
        STEP ** (fmean(levels[half:]) - fmean(levels[:half])),
    )  # fmt: skip
