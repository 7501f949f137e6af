"""How many samples a quantile needs."""

from functools import cache

from scipy.stats import binom

# A bootstrap of its own sample flatters a quantile in the tail.
TAIL_CONFIDENCE = 0.99


@cache
def needed_samples(quantile: float) -> int:
    """Return how many samples a quantile needs to be reported: 662 for the 99th percentile.

    With so many, at least two lie beyond it at TAIL_CONFIDENCE, so that the second from the end
    bounds it: the number beyond is binomial, whatever the distribution (David and Nagaraja 2003,
    Order Statistics, 7.1). That is MLPerf Inference's rule of early stopping (2021).
    """
    beyond, chance = min(quantile, 1 - quantile), 1 - TAIL_CONFIDENCE
    count = 2
    while binom.cdf(1, count, beyond) > chance:
        count += max(1, count // 200)
    while binom.cdf(1, count - 1, beyond) <= chance:
        count -= 1
    return count


def enough_samples(quantile: float, count: int | None) -> bool:
    """Return whether so many samples carry a quantile: `needed_samples`; None counts as none."""
    return (count or 0) >= needed_samples(quantile)
