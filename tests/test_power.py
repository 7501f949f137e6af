"""The chance that planned trials decide a claim, compared with what is known of planted values."""

import math

import numpy as np
import pytest
from conftest import bench
from scipy.stats import nct, t

from deathmatch.analysis import judging
from deathmatch.analysis.by_trial import Values
from deathmatch.analysis.judging import Judgement, Part
from deathmatch.quantities.quantity import Kind

power = bench("power")


def judged(part: Part) -> Judgement:
    return judging.together([part])


def ratios(away: float, spread: float) -> Part:
    """Return three paired ratios with this mean and deviation of logarithms, claimed above 1."""
    steps = (-spread, 0, spread)
    above = Values({n: 100 * math.exp(away + step) for n, step in enumerate(steps)})
    return Part([above, Values(dict.fromkeys(range(3), 100.0))], 1, math.inf)


@pytest.mark.parametrize(("away", "count"), [(0.1, 5), (0.1, 12), (0.3, 5), (0.02, 5)])
def test_of_ratios_it_is_the_power_of_a_t_test(away, count):
    spread, level = 0.1, 0.05
    critical = t.ppf(1 - level / 2, count - 1)
    shift = away / spread * math.sqrt(count)
    expected = nct.sf(critical, count - 1, shift) + nct.cdf(-critical, count - 1, shift)
    known = power.chance(judged(ratios(away, spread)), count, np.random.default_rng(1))
    assert known == pytest.approx(expected, abs=0.08)


@pytest.mark.parametrize(("happened", "count", "chance"), [(1, 5, 0), (1, 6, 1), (0, 6, 1)])
def test_of_what_always_happens_it_needs_six_trials(happened, count, chance):
    part = Part([Values(dict.fromkeys(range(3), happened), kind=Kind.OUTCOME)], 0.5, math.inf)
    assert power.chance(judged(part), count, np.random.default_rng(1)) == chance


def test_several_parts_that_are_never_so_need_more_trials():
    counts = [Values(dict.fromkeys(range(3), 1.0), kind=Kind.COUNT) for _ in range(4)]
    parts = [Part([side], 100, math.inf) for side in counts]
    together = judging.together(parts)
    known = [power.chance(together, count, np.random.default_rng(1)) for count in (7, 8)]
    assert known == [0, 1]
