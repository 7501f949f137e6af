"""Intervals that keep their error, and how many trials detect a difference.

In: one value a trial, or one ratio a block, in the order in which they were measured. Out: the
interval at a level, and how many trials it would take to detect a difference.

The mean of the logarithms is held against Student's t (1908), once, after all trials, at ERROR. Who
adds trials until a claim is decided looks several times; the number of trials that this takes
supposes looks at LOOKS, each at a level of its own, LEVELS, so that a test which stops at the first
look that decides gives a false verdict, at the threshold itself, in 5 % of all cases:
group-sequential testing (Pocock 1977, Biometrika 64; Jennison and Turnbull 1999, Group Sequential
Methods, chapter 5, whose repeated intervals these are). The levels
were found by simulation with normal logarithms; `tests/test_sequential.py` simulates them again.
Of 200,000 simulated series each, noise with heavy tails (t with 3 or 5 degrees of freedom, one
value in 20 tenfold) errs in 4 %; exponential noise, and trials that correlate by 0.3 with the one
before, in 15 %.
"""

import math
from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np
from scipy.stats import binomtest, t, ttest_ind

LOOKS = (3, 5, 7, 9, 12, 15)
"""After how many trials a claim is looked at, where trials are added until it is decided."""
# Two-sided, of each look.
LEVELS = dict(zip(LOOKS, (0.0099, 0.0078, 0.0093, 0.0111, 0.0158, 0.0198), strict=True))
ERROR = 0.05
"""The share of false verdicts at the threshold itself, of one look or over all LOOKS."""
# The share of cases in which a difference of the size called detectable is detected at that look.
POWER = 0.8


def look(count: int) -> int | None:
    """Return the last look that so many trials allow; None before the first."""
    return max((at for at in LOOKS if at <= count), default=None)


def interval(values: Sequence[float], level: float) -> tuple[float, float]:
    """Return the interval of the mean of `values` at a two-sided level.

    Of the geometric mean where all are positive, else of the arithmetic one. Values that do not
    differ have no width. Needs two values or more (ValueError).
    """
    if len(values) < 2:
        raise ValueError("one value has no interval")
    if len(set(values)) == 1:
        return float(values[0]), float(values[0])
    logarithmic = min(values) > 0
    known = np.log(values) if logarithmic else np.asarray(values, dtype=float)
    middle = float(known.mean())
    half = half_width(len(known), level) * float(np.std(known, ddof=1))
    ends = (middle - half, middle + half)
    return tuple(map(math.exp, ends)) if logarithmic else ends


def unpaired_interval(
    above: Sequence[float], below: Sequence[float], level: float
) -> tuple[float, float]:
    """Return the interval of the ratio of two geometric means, whose trials are no pairs.

    Welch's t (1947, Biometrika 34), with his degrees of freedom. All values must be positive, two
    or more a side (ValueError).
    """
    if min(len(above), len(below)) < 2 or min(*above, *below) <= 0:
        raise ValueError("two positive values a side are needed")
    if len(set(above)) == len(set(below)) == 1:
        return above[0] / below[0], above[0] / below[0]
    test = ttest_ind(np.log(above), np.log(below), equal_var=False)
    low, high = test.confidence_interval(1 - level)
    return math.exp(low), math.exp(high)


def share_interval(outcomes: Sequence[float], level: float) -> tuple[float, float]:
    """Return the exact interval of the share of trials in which something happened.

    `outcomes` are 0 or 1; Clopper and Pearson (1934, Biometrika 26). A t test of outcomes that are
    all alike would have no spread to go by, and be wrong one time in four after three trials.
    """
    count, happened = len(outcomes), int(sum(outcomes))
    low, high = binomtest(happened, count).proportion_ci(1 - level, method="exact")
    return float(low), float(high)


def spread(values: Iterable[float]) -> float | None:
    """Return the standard deviation of the logarithms of values; None if one is not positive.

    None, too, with fewer than two.
    """
    known = list(values)
    if len(known) < 2 or min(known) <= 0:
        return None
    return float(np.std(np.log(known), ddof=1))


def half_width(count: int, level: float) -> float:
    """Return half the width of so many trials' interval, in standard deviations between trials."""
    return _quantile(level, count - 1) / math.sqrt(count)


def detectable(deviation: float, count: int) -> float:
    """Return the distance, as a logarithm, that a look at `count` trials detects in POWER of cases.

    The quantiles of the level and of the power, times the standard error, as for a paired t test
    (Cohen 1988, Statistical Power Analysis, chapter 2). `count` is one of LOOKS.
    """
    quantiles = _quantile(LEVELS[count], count - 1) + _power(count)
    return quantiles * deviation / math.sqrt(count)


def needed(deviation: float, distance: float, beyond: int = 0) -> int | None:
    """Return at which of LOOKS a distance would be detected in POWER of cases; None if at none.

    Both are logarithms; the deviation is that between trials. Looks up to `beyond` are over.
    """
    ahead = (at for at in LOOKS if at > beyond)
    return next((at for at in ahead if detectable(deviation, at) <= abs(distance)), None)


@cache
def _quantile(level: float, freedom: float) -> float:
    return float(t.ppf(1 - level / 2, freedom))


@cache
def _power(count: int) -> float:
    return float(t.ppf(POWER, count - 1))
