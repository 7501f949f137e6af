"""Is a series a plateau, a drift or a staircase? Two tests: for a trend and for one step.

In: a run's numbers, one for each of equal intervals. Out: its course, in one word, and its change.
Both tests are free of assumptions about the distribution.
"""

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
import scipy  # Its `stats` loads at its first use: a second that most commands never need.

PLATEAU, DRIFTING, STAIRCASE = "plateau", "drifting", "staircase"
# In a shorter series, neither test finds evident changes at this level.
FEWEST = 10
# For both tests together: half for each.
FALSE_ALARMS = 0.01
# A smaller change does not invalidate a point.
LEAST_CHANGE = 0.1
PERMUTATIONS, SEED = 20_000, 2009


def steadiness_of(values: Sequence[float | None]) -> tuple[str | None, float | None]:
    """Return the course of a series, and its change as a share of its median.

    If both tests find a change, it is that of the line (Theil and Sen) or the step, whichever fits
    better. Both results are None if the series has fewer than FEWEST numbers, a missing one, or a
    median of 0.
    """
    if len(values) < FEWEST or any(value is None for value in values):
        return None, None
    series = np.asarray(values, float)
    middle = float(np.median(series))
    if middle == 0:
        return None, None
    slope, place = sen_slope(series), pettitt_place(series)
    line = slope * (np.arange(len(series)) - (len(series) - 1) / 2)
    before, after = np.median(series[:place]), np.median(series[place:])
    stairs = np.where(np.arange(len(series)) < place, before, after)
    alarm = FALSE_ALARMS / 2
    changes = []
    if mann_kendall(series) < alarm:
        change = slope * (len(series) - 1) / middle
        changes.append((_misfit(series - line), DRIFTING, change))
    if pettitt(series) < alarm:
        changes.append((_misfit(series - stairs), STAIRCASE, (after - before) / middle))
    if not changes:
        return PLATEAU, 0.0
    _, word, change = min(changes)
    return (word if abs(change) > LEAST_CHANGE else PLATEAU), float(change)


def mann_kendall(series: np.ndarray) -> float:
    """Return the probability of a trend as clear as this in a series without one, two-sided.

    Mann 1945, Econometrica 13; with Kendall's correction for ties, and that of Hamed and Rao 1998,
    Journal of Hydrology 204, for autocorrelation. The variance is at least that of independent
    numbers.
    """
    count = len(series)
    first, second = np.triu_indices(count, 1)
    score = np.sign(series[second] - series[first]).sum()
    _, ties = np.unique(series, return_counts=True)
    variance = (
        count * (count - 1) * (2 * count + 5) - (ties * (ties - 1) * (2 * ties + 5)).sum()
    ) / 18
    if variance == 0:
        return 1.0
    place = np.arange(count)
    variance *= variance_factor(series - sen_slope(series) * place)
    # Continuity: a score is even or odd, never between.
    z = max(0.0, abs(score) - 1) / math.sqrt(variance)
    return float(2 * scipy.stats.norm.sf(z))


def variance_factor(residuals: np.ndarray) -> float:
    """Return the factor by which autocorrelation increases the score's variance; at least 1.

    Hamed and Rao's sum, over the lags at which the autocorrelation of the ranks is significant at
    5 %.
    """
    count = len(residuals)
    ranks = scipy.stats.rankdata(residuals)
    ranks = ranks - ranks.mean()
    power = (ranks**2).sum()
    if power == 0:
        return 1.0
    least, total = scipy.stats.norm.ppf(0.975) / math.sqrt(count), 0.0
    for lag in range(1, count - 2):
        similar = (ranks[:-lag] * ranks[lag:]).sum() / power
        if abs(similar) > least:
            total += (count - lag) * (count - lag - 1) * (count - lag - 2) * similar
    return max(1.0, 1 + 2 * total / (count * (count - 1) * (count - 2)))


def pettitt(series: np.ndarray) -> float:
    """Return the probability of a step as clear as this in a series without one.

    Pettitt 1979, Applied Statistics 28: the share of PERMUTATIONS with so high a score, because his
    approximation finds no step in 15 numbers. The score is corrected for autocorrelation.
    """
    place = pettitt_place(series)
    parts = (series[:place], series[place:])
    residuals = np.concatenate([part - np.median(part) for part in parts])
    score = np.abs(_pettitt_scores(scipy.stats.rankdata(series))).max()
    widened = score / math.sqrt(variance_factor(residuals))
    null = _null_scores(len(series))
    return float((1 + (null >= widened - 1e-9).sum()) / (1 + PERMUTATIONS))


@cache
def _null_scores(count: int) -> np.ndarray:
    drawn = np.random.default_rng(SEED).random((PERMUTATIONS, count))
    ranks = drawn.argsort(axis=1).argsort(axis=1) + 1.0
    return np.abs(_pettitt_scores(ranks)).max(axis=1)


def pettitt_place(series: np.ndarray) -> int:
    """Return the index of the first number after the clearest step."""
    return int(np.abs(_pettitt_scores(scipy.stats.rankdata(series))).argmax()) + 1


def sen_slope(series: np.ndarray) -> float:
    """Return the median of the slopes between all pairs (Sen 1968, JASA 63)."""
    return float(scipy.stats.theilslopes(series).slope)


def _pettitt_scores(ranks: np.ndarray) -> np.ndarray:
    """Return U(t) for each t, of one series of ranks or of several in rows."""
    count = ranks.shape[-1]
    return 2 * ranks.cumsum(axis=-1)[..., :-1] - np.arange(1, count) * (count + 1)


def _misfit(rest: np.ndarray) -> float:
    return float(np.abs(rest - np.median(rest)).sum())
