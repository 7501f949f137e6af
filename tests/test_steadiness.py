"""Verdicts on plateaus, drifts and steps that are planted with a fixed seed."""

import numpy as np
import pytest
from scipy.stats import kendalltau

from deathmatch.data import steadiness

RUNS = 100


def noise(rng: np.random.Generator, count: int, likeness: float) -> np.ndarray:
    """Return an autoregressive series of variance 1; `likeness` is its autocorrelation at lag 1."""
    drawn = rng.standard_normal(count)
    for place in range(1, count):
        drawn[place] *= np.sqrt(1 - likeness**2)
        drawn[place] += likeness * drawn[place - 1]
    return drawn


def courses(shape: np.ndarray, deviation: float, likeness: float = 0.0) -> list[str]:
    rng = np.random.default_rng(2009)
    series = (shape * (1 + deviation * noise(rng, len(shape), likeness)) for _ in range(RUNS))
    return [steadiness.steadiness_of(each)[0] for each in series]


@pytest.mark.parametrize(("count", "likeness"), [(10, 0.0), (40, 0.3)])
def test_a_plateau_is_recovered(count, likeness):
    """The tests' own false alarms: a deviation so large that the least change hides none."""
    told = courses(np.full(count, 5000.0), 0.3, likeness)
    alarms = 1 - told.count(steadiness.PLATEAU) / RUNS
    # At 1 %, 100 runs show 5 alarms or fewer at 99.9 %; likeness that so few numbers cannot show
    # costs some more.
    assert alarms <= (0.05 if likeness == 0 else 0.08)


def test_a_drift_and_a_staircase_are_detected():
    count = 13
    drift = np.linspace(4000, 6000, count)
    stairs = np.where(np.arange(count) < count // 2, 4000.0, 6000.0)
    for shape, word in ((drift, steadiness.DRIFTING), (stairs, steadiness.STAIRCASE)):
        told = courses(shape, 0.05)
        assert 1 - told.count(steadiness.PLATEAU) / RUNS > 0.95
        assert told.count(word) / RUNS > 0.8


def test_a_change_too_small_to_matter_is_a_plateau():
    word, change = steadiness.steadiness_of(np.linspace(5000, 5200, 40))
    assert word == steadiness.PLATEAU and change == pytest.approx(200 / 5100)
    word, change = steadiness.steadiness_of(np.linspace(5000, 4000, 40))
    assert word == steadiness.DRIFTING and change == pytest.approx(-1000 / 4500)


def test_a_short_or_broken_series_has_no_verdict():
    few = [5.0] * (steadiness.FEWEST - 1)
    assert steadiness.steadiness_of(few) == (None, None)
    assert steadiness.steadiness_of([*few, None]) == (None, None)
    assert steadiness.steadiness_of([0.0] * 20) == (None, None)
    assert steadiness.steadiness_of([5.0] * 20) == (steadiness.PLATEAU, 0.0)


def test_mann_kendall_is_kendalls_tau_against_time():
    """Without likeness the probability is that of Kendall's tau, but for its continuity."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        series = rng.standard_normal(40)
        residuals = series - steadiness.sen_slope(series) * np.arange(40)
        if steadiness.variance_factor(residuals) == 1:
            theirs = kendalltau(np.arange(40), series, method="asymptotic").pvalue
            assert steadiness.mann_kendall(series) == pytest.approx(theirs, abs=0.02)


def test_likeness_widens_the_variance():
    rng = np.random.default_rng(3)
    alike = np.mean([steadiness.variance_factor(noise(rng, 60, 0.7)) for _ in range(30)])
    apart = np.mean([steadiness.variance_factor(noise(rng, 60, 0.0)) for _ in range(30)])
    # (1 + 0.7) / (1 - 0.7) in the long run.
    assert 2.5 < alike < 7 and apart < 1.3


def test_pettitt_finds_the_place_of_a_step():
    series = np.array([3.0, 3.1, 2.9, 3.0, 3.2, 9.0, 9.1, 8.9, 9.2, 9.0])
    assert steadiness.pettitt_place(series) == 5
    assert steadiness.pettitt(series[:5]) > 0.3
