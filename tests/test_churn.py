"""How connections open: the rule for a steady pace on planted warm-ups, and its record."""

import numpy as np

from deathmatch.measure import churn
from deathmatch.plan import files, record

ROUNDS = np.arange(files.experiment("c10k").churn.rounds)
NOISE = 0.1
# Connections per second by round: steady at once, a JIT that gains four fifths, gains without end.
STEADY = np.full(len(ROUNDS), 2000.0)
WARMING = 744 * (1 - 0.8 * np.exp(-ROUNDS / 6))
NEVER = 300 * 1.06**ROUNDS


def simulated(truth: np.ndarray, runs: int = 400) -> list[int | None]:
    """Return after how many rounds each run was taken for steady; None for one that never was."""
    noise = np.random.default_rng(2012).normal(0, NOISE, (runs, len(truth)))
    found = []
    for rates in (truth * np.exp(noise)).tolist():
        rounds = (n for n in range(1, len(rates) + 1) if churn.steady(rates[:n]))
        found.append(next(rounds, None))
    return found


def test_a_steady_rate_is_found_within_half_of_the_rounds():
    found = simulated(STEADY)
    assert None not in found
    assert min(found) == churn.LEAST_ROUNDS and np.quantile(found, 0.95) <= len(ROUNDS) / 2


def test_a_warm_up_is_found_steady_once_little_is_left_to_gain():
    found = simulated(WARMING)
    assert found.count(None) <= len(found) / 100
    left = [1 - WARMING[n - 1] / WARMING[-1] for n in found if n]
    assert np.quantile(left, 0.95) < 0.1 < 1 - WARMING[churn.LEAST_ROUNDS - 1] / WARMING[-1]


def test_endless_growth_is_not_found_steady():
    found = simulated(NEVER)
    assert len(found) - found.count(None) <= len(found) / 100


def test_a_rate_that_only_scatters_little_is_not_steady_while_it_grows():
    """The coefficient of variation of five rounds is below a twentieth here all the time."""
    rates = [1000 * 1.02**n for n in range(30)]
    assert np.std(rates[-5:]) / np.mean(rates[-5:]) < 0.05
    assert not any(churn.steady(rates[:n]) for n in range(len(rates) + 1))


def test_no_rounds_and_rates_of_0_are_not_steady():
    assert not churn.steady([])
    assert not churn.steady([0.0] * churn.LEAST_ROUNDS)
    assert record.last_rate_cps([]) is None and record.last_rate_cps([1.0, 3.0]) == 2.0


def test_rounds_leave_ports_for_the_connections_that_are_measured():
    assert churn.rounds_that_fit(30, 1000, 10_000, 64_512) == 30
    assert churn.rounds_that_fit(30, 1000, 50_000, 64_512) == 14
    assert churn.rounds_that_fit(30, 1000, 70_000, 64_512) == 0
