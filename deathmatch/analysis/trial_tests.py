"""Tests over trials: the interval of a statistic, and the difference that trials can detect.

In: one value a trial, or one ratio a block. Out: an interval at a two-sided level.

Trials are tested once, after all of them, at the level ERROR. Two tests keep it:

- Student's t (1908) of the mean, on a scale on which the values have no bounds (`SCALES`).
- The exact binomial test (Clopper and Pearson 1934, Biometrika 26) of the share of trials in which
  something happened, or in which a value is as claimed (the sign test). It needs six trials or
  more, and is used for outcomes, counts, and values that do not differ or lie on a bound of their
  kind, for which t has no spread or no scale.

`marks` and `standing` say which results survive a correction for many tests.

`bench/ledgers.py` simulates the error rates.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import expit, logit
from scipy.stats import binomtest, false_discovery_control, t, ttest_1samp, ttest_ind

from deathmatch.analysis.stats import NO_TRIAL, Interval
from deathmatch.quantities.quantity import Kind

ERROR = 0.05
"""The share of false verdicts at the threshold itself."""
POWER = 0.8
"""The share of cases in which a difference of the size called detectable is detected."""

SCALES: dict[Kind, tuple[Callable, Callable]] = {
    Kind.POSITIVE: (np.log, np.exp),
    Kind.SHARE: (logit, expit),
}
"""By kind, the transformation of its values to a scale without bounds, and its inverse."""
_INSIDE = {Kind.POSITIVE: (0, math.inf), Kind.SHARE: (0, 1)}


def has_scale(values: Sequence[float], kind: Kind) -> bool:
    """Return whether all values lie inside the bounds of a kind that has a scale."""
    if kind not in _INSIDE:
        return False
    low, high = _INSIDE[kind]
    return all(low < value < high for value in values)


def mean_interval(
    values: Sequence[float], level: float, kind: Kind = Kind.POSITIVE, step: float = 0
) -> Interval:
    """Return the mean on the kind's scale with Student's interval; of one value, that value.

    On a logarithmic scale it is the geometric mean. `step` is the last recorded digit, in the
    values' unit: it adds the deviation of rounding, and half of it to either side. Needs
    values inside the kind's bounds (`has_scale`), else ValueError.
    """
    if len(values) == 0:
        return NO_TRIAL
    if not has_scale(values, kind):
        raise ValueError("a value has no place on the scale")
    forward, back = SCALES[kind]
    known = forward(np.asarray(values, dtype=float))
    middle = float(known.mean())
    estimate = float(back(middle))
    if len(values) == 1:
        return Interval(1, estimate)
    rounding = step / estimate if step else 0
    deviation = math.hypot(float(np.std(known, ddof=1)), rounding / math.sqrt(12))
    half = half_width(len(known), level) * deviation + rounding / 2
    ends = (float(back(middle - half)), float(back(middle + half)))
    return Interval(len(values), estimate, *ends)


def chance_of_ratio(ratios: Sequence[float]) -> float | None:
    """Return the p-value of the geometric mean of ratios against 1; None of fewer than two."""
    if len(ratios) < 2:
        return None
    if len(set(ratios)) == 1:
        return float(ratios[0] == 1)
    return float(ttest_1samp(np.log(ratios), 0).pvalue)


def unpaired_interval(above: Sequence[float], below: Sequence[float], level: float) -> Interval:
    """Return the ratio of two geometric means of unpaired trials, with its interval.

    Welch's t (1947, Biometrika 34), with his degrees of freedom. No ends where a side has one trial
    or neither side has a spread. All values must be positive (ValueError).
    """
    if min(*above, *below) <= 0:
        raise ValueError("two positive values a side are needed")
    sides = np.log(above), np.log(below)
    count = min(len(above), len(below))
    ratio = math.exp(float(sides[0].mean() - sides[1].mean()))
    if count < 2 or len(set(above)) == len(set(below)) == 1:
        return Interval(count, ratio)
    ends = ttest_ind(*sides, equal_var=False).confidence_interval(1 - level)
    return Interval(count, ratio, *(math.exp(end) for end in ends))


def share_interval(outcomes: Sequence[float], level: float) -> Interval:
    """Return the share of trials in which something happened, with its exact interval.

    `outcomes` are 0 or 1.
    """
    count, happened = len(outcomes), int(sum(outcomes))
    low, high = binomtest(happened, count).proportion_ci(1 - level, method="exact")
    return Interval(count, happened / count, float(low), float(high))


def spread(values: Sequence[float], kind: Kind = Kind.POSITIVE) -> float | None:
    """Return the standard deviation between trials on the kind's scale; None without a scale.

    None, too, with fewer than two values.
    """
    known = list(values)
    if len(known) < 2 or not has_scale(known, kind):
        return None
    return float(np.std(SCALES[kind][0](np.asarray(known)), ddof=1))


def distance(value: float, bound: float, kind: Kind = Kind.POSITIVE) -> float:
    """Return the distance of two values on the kind's scale; infinite if one is not on it."""
    if not has_scale((value, bound), kind):
        return math.inf
    forward, _ = SCALES[kind]
    return abs(float(forward(value) - forward(bound)))


def half_width(count: int, level: float) -> float:
    """Return half the width of so many trials' interval, in standard deviations between trials."""
    return float(t.ppf(1 - level / 2, count - 1)) / math.sqrt(count)


def detectable(deviation: float, count: int) -> float:
    """Return the distance that `count` trials detect in POWER of cases, on the deviation's scale.

    The quantiles of ERROR and of POWER, times the standard error, as for a paired t test
    (Cohen 1988, Statistical Power Analysis, chapter 2).
    """
    quantiles = t.ppf(1 - ERROR / 2, count - 1) + t.ppf(POWER, count - 1)
    return float(quantiles) * deviation / math.sqrt(count)


HOLM = "fragile (Holm)"
RATE = "fragile (Holm, false discovery rate)"
"""Marks of verdicts that do not survive Holm's correction (HOLM), or neither of two (RATE)."""


def marks(errors: Sequence[float | None]) -> list[str]:
    """Return for each verdict HOLM, RATE, or "" if it survives both or decides nothing.

    `errors` are those of all verdicts that were tested; None for inconclusive ones, which count as
    tests. Holm (1979, Scandinavian Journal of Statistics 6) bounds the chance of any false
    verdict in the ledger, Benjamini and Hochberg (1995, Journal of the Royal Statistical Society B
    57) the expected share of false ones among those that decide, both at ERROR.
    """
    if not errors:
        return []
    known = [1.0 if error is None else error for error in errors]
    within_rate = false_discovery_control(known) <= ERROR
    by_error = sorted(range(len(known)), key=known.__getitem__)
    standing = 0
    while standing < len(known) and known[by_error[standing]] <= ERROR / (len(known) - standing):
        standing += 1
    by_holm = set(by_error[:standing])
    return [
        "" if error is None or place in by_holm else HOLM if within_rate[place] else RATE
        for place, error in enumerate(errors)
    ]


def standing(chances: Sequence[float | None]) -> int:
    """Return how many p-values survive Holm's correction when all are tested together."""
    known = [chance if chance is not None and chance <= ERROR else None for chance in chances]
    return sum(chance is not None and mark == "" for chance, mark in zip(known, marks(known)))
