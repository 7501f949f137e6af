"""The test of claims, at one look or several: what it gets wrong, tells, and judges."""

import math

import numpy as np
import polars as pl
import pytest

from deathmatch.analysis import claims, judging, published, selecting, sequential, stats
from deathmatch.analysis.values import Values
from deathmatch.data import tables

RUNS = 3000


def decided(values: np.ndarray, threshold: float) -> tuple[int, int]:
    """Return (side of the threshold, look) at which the test stops; (0, last look) if at none."""
    for at in sequential.LOOKS:
        low, high = sequential.interval(values[:at], sequential.LEVELS[at])
        if low > threshold or high < threshold:
            return (1 if low > threshold else -1), at
    return 0, sequential.LOOKS[-1]


def simulated(deviation: float, distance: float, seed: int) -> list[tuple[int, int]]:
    """Return what the test says of so many series of ratios around a threshold of 1."""
    chance = np.random.default_rng(seed)
    series = np.exp(chance.normal(distance, deviation, (RUNS, sequential.LOOKS[-1])))
    return [decided(one, 1) for one in series]


@pytest.mark.parametrize("deviation", [0.02, 0.3])
def test_false_verdicts_at_the_threshold_are_as_rare_as_promised(deviation):
    found = simulated(deviation, 0, seed=1)
    wrong = sum(side != 0 for side, _ in found) / RUNS
    # Three standard errors of the simulation itself.
    assert wrong < sequential.ERROR + 3 * math.sqrt(sequential.ERROR * 0.95 / RUNS)
    below = sum(side < 0 for side, _ in found) / RUNS
    assert below < sequential.ERROR / 2 + 3 * math.sqrt(sequential.ERROR / 2 / RUNS)


@pytest.mark.parametrize("trials", [2, 3, 5])
def test_one_look_at_fixed_trials_errs_as_rarely(trials):
    series = np.exp(np.random.default_rng(trials).normal(0, 0.2, (RUNS, trials)))
    found = [sequential.interval(one, sequential.ERROR) for one in series]
    wrong = sum(low > 1 or high < 1 for low, high in found) / RUNS
    # Three standard errors of the simulation itself.
    assert wrong == pytest.approx(sequential.ERROR, abs=3 * math.sqrt(sequential.ERROR / RUNS))
    halves = np.log([high for _, high in found]) - np.log(series).mean(axis=1)
    of_spread = halves / np.log(series).std(axis=1, ddof=1)
    assert of_spread == pytest.approx(sequential.half_width(trials, sequential.ERROR))


def test_the_bootstrap_of_three_is_wrong_far_more_often():
    series = np.exp(np.random.default_rng(2).normal(0, 0.1, (RUNS // 10, 3)))
    found = [stats.interval(list(one)) for one in series]
    wrong = sum(one.low > 1 or one.high < 1 for one in found) / len(found)
    assert wrong == pytest.approx(1 - stats.range_coverage(3), abs=0.08)


def test_far_from_the_threshold_few_trials_are_enough():
    found = simulated(0.02, math.log(1.05), seed=3)
    assert all(side == 1 for side, _ in found)
    assert np.mean([look for _, look in found]) < 7


def test_a_detectable_difference_is_told_at_that_look_in_four_of_five_cases():
    distance = sequential.detectable(0.1, 7)
    chance = np.random.default_rng(4)
    series = np.exp(chance.normal(distance, 0.1, (RUNS, 7)))
    level = sequential.LEVELS[7]
    told = sum(sequential.interval(one, level)[0] > 1 for one in series) / RUNS
    assert told == pytest.approx(sequential.POWER, abs=0.05)
    assert sequential.needed(0.1, distance * 1.001) == 7
    assert sequential.needed(0.1, 0.01) is None
    assert sequential.needed(0.0, 0.5) == sequential.LOOKS[0]


def test_values_without_spread_or_sign():
    assert sequential.interval([7.0, 7.0, 7.0], 0.01) == (7.0, 7.0)
    low, high = sequential.interval([-0.2, 0.0, 0.3], 0.01)
    assert low < -0.2 and high > 0.3
    assert sequential.spread([1.0, 0.0]) is None and sequential.spread([2.0]) is None
    with pytest.raises(ValueError, match="no interval"):
        sequential.interval([1.0], 0.01)


def test_outcomes_that_are_all_alike_decide_only_when_chance_is_unlikely():
    decisive = [
        at
        for at, level in sequential.LEVELS.items()
        if sequential.share_interval([1] * at, level)[0] > 0.5
    ]
    assert decisive[0] == 9
    # A coin would give so many alike in fewer cases than the look's level has.
    assert 2 * 0.5**9 < sequential.LEVELS[9] < 2 * 0.5**7 < 2 * 0.5**5
    assert sequential.share_interval([0, 0, 0], 0.01)[0] == 0


def test_unpaired_sides_are_compared_by_their_own_spread():
    chance = np.random.default_rng(5)
    wrong = 0
    for _ in range(RUNS):
        above, below = (np.exp(chance.normal(0, s, 9)) for s in (0.3, 0.05))
        low, high = sequential.unpaired_interval(above, below, sequential.LEVELS[9])
        wrong += low > 1 or high < 1
    assert wrong / RUNS < sequential.LEVELS[9] + 3 * math.sqrt(sequential.LEVELS[9] / RUNS)
    with pytest.raises(ValueError, match="positive"):
        sequential.unpaired_interval([1.0, 0.0], [1.0, 1.0], 0.01)


# Which data it judges


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """Return a function that plants bytes per message of ETS, and returns the claim on them."""
    monkeypatch.setattr(tables, "ROOT", tmp_path)
    monkeypatch.setattr(claims, "ROOT", tmp_path)
    claim = next(one for one in published.claims() if one["id"] == "day-ets-bytes")

    def planted(sizes: list[float]) -> dict:
        folder = tmp_path / "data" / "smoke" / "storage"
        folder.mkdir(parents=True, exist_ok=True)
        for table in ("points", "trials"):
            names = tables.columns("storage", table)
            rows = [
                {"server": "otp-store", "variant": "ets", "configuration": "ets",
                 "body_bytes": 100, "n": n, "messages": held, "outcome": "measured",
                 "rss_bytes": int(held * size)}
                for n, size in enumerate(sizes, 1)
                for held in ((0, 1000) if table == "points" else (0,))
            ]  # fmt: skip
            known = [{k: v for k, v in row.items() if k in names} for row in rows]
            tables.write(pl.DataFrame(known, schema=names), "storage", table, folder)
        selecting.clear_caches()
        return claims.verdict("smoke", claim)

    return planted


def test_a_dataset_is_judged_once_after_all_trials(stored):
    # Their range lies above the claimed 330, as noise's would a quarter of the time.
    assert stored([336.0, 345.0, 352.0]).verdict == judging.OPEN
    clear = [341.0, 346.0, 352.0]
    found = stored(clear)
    assert found.verdict == judging.NOT and found.interval.trials == 3 and found.interval.low > 330
    # All trials count.
    assert stored([*clear, 200.0, 500.0]).verdict == judging.OPEN
    assert stored([348.0]).verdict == judging.OPEN


def test_what_is_divided_by_nothing_decides_nothing():
    some, none = Values({1: 5.0, 2: 6.0, 3: 7.0}), Values({1: 0.0, 2: 0.0, 3: 0.0})
    found = judging.tested([some, none], 1, math.inf)
    assert found.verdict in (judging.OPEN, judging.NOT_RUN)
