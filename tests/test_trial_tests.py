"""The tests of claims: what they get wrong, what intervals can be, and how they judge a rule."""

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from conftest import ROOT
from plant import write
from polars.testing import assert_frame_equal

from deathmatch.analysis import (
    claims,
    judging,
    ledger,
    published,
    trial_tests,
    verdict_words,
)
from deathmatch.analysis.by_trial import Values
from deathmatch.analysis.judging import LARGER, NOT, OPEN, REPLICATED, SMALLER, Part, claimed_range
from deathmatch.analysis.ledger import Verdict
from deathmatch.analysis.stats import Interval
from deathmatch.data import archive, table_files
from deathmatch.quantities.quantity import Kind

RUNS = 3000
ABOVE = claimed_range(1, "above")


def side(*values: float, **more) -> Values:
    return Values(dict(enumerate(values, 1)), **more)


# Intervals


@pytest.mark.parametrize("trials", [2, 3, 5])
def test_noise_at_the_threshold_is_called_a_difference_as_rarely_as_promised(trials):
    series = np.exp(np.random.default_rng(trials).normal(0, 0.2, (RUNS, trials)))
    found = [trial_tests.mean_interval(values, trial_tests.ERROR) for values in series]
    wrong = sum(known.low > 1 or known.high < 1 for known in found) / RUNS
    # Three standard errors of the simulation itself.
    allowed = 3 * math.sqrt(trial_tests.ERROR / RUNS)
    assert wrong == pytest.approx(trial_tests.ERROR, abs=allowed)
    halves = np.log([known.high for known in found]) - np.log(series).mean(axis=1)
    of_spread = halves / np.log(series).std(axis=1, ddof=1)
    assert of_spread == pytest.approx(trial_tests.half_width(trials, trial_tests.ERROR))


def test_a_detectable_difference_is_detected_in_four_of_five_cases():
    distance = trial_tests.detectable(0.1, 7)
    series = np.exp(np.random.default_rng(4).normal(distance, 0.1, (RUNS, 7)))
    found = [trial_tests.mean_interval(values, trial_tests.ERROR) for values in series]
    detected = sum(known.low > 1 for known in found) / RUNS
    assert detected == pytest.approx(trial_tests.POWER, abs=0.05)


@pytest.mark.parametrize(
    ("kind", "values", "lowest", "highest"),
    [
        (Kind.POSITIVE, (0.1, 5, 90), 0, math.inf),
        (Kind.SHARE, (0.2, 0.9, 0.99), 0, 1),
    ],
)
def test_an_interval_lies_within_what_the_statistic_can_be(kind, values, lowest, highest):
    known = trial_tests.mean_interval(values, 0.01, kind)
    assert lowest < known.low < known.estimate < known.high < highest


def test_estimate_and_interval_are_of_one_kind():
    known = trial_tests.mean_interval((1, 2, 32), 0.05)
    assert known.estimate == pytest.approx(4)
    assert math.sqrt(known.low * known.high) == pytest.approx(known.estimate)


def test_what_was_recorded_in_steps_has_the_width_of_a_step():
    known = trial_tests.mean_interval((425.8, 425.8, 425.8), 0.05, step=0.04)
    assert 425.8 - 0.2 < known.low < 425.8 - 0.02 and 425.8 + 0.02 < known.high < 425.8 + 0.2


def test_shares_of_trials_need_six_that_are_alike():
    found = {count: trial_tests.share_interval([1] * count, 0.05) for count in (3, 5, 6)}
    assert [known.low > 0.5 for known in found.values()] == [False, False, True]
    assert found[3].high == 1


def test_unpaired_sides_are_compared_by_their_own_spread():
    chance = np.random.default_rng(5)
    wrong = 0
    for _ in range(RUNS):
        above, below = (np.exp(chance.normal(0, spread, 9)) for spread in (0.3, 0.05))
        known = trial_tests.unpaired_interval(above, below, 0.05)
        wrong += known.low > 1 or known.high < 1
    assert wrong / RUNS < 0.05 + 3 * math.sqrt(0.05 / RUNS)
    assert trial_tests.unpaired_interval([2, 2, 2], [1, 1, 1], 0.05).low is None


# How a part is judged


@pytest.mark.parametrize(("trials", "verdict"), [(3, OPEN), (5, OPEN), (6, REPLICATED)])
def test_counts_are_judged_by_the_trials_that_are_as_claimed(trials, verdict):
    none = side(*[0.0] * trials, kind=Kind.COUNT)
    found = judging.tested(Part([none], *claimed_range(0.5, "below")))
    assert (found.verdict, found.as_claimed) == (verdict, True)
    assert 0 <= found.interval.low < found.interval.high == 1


def test_what_was_never_counted_is_not_more_than_anything():
    none, some = (side(*values, kind=Kind.COUNT) for values in ([0.0] * 6, [0, 0, 1, 2, 0, 0]))
    assert judging.tested(Part([none, some], *ABOVE)).verdict == NOT
    assert judging.tested(Part([none, none], *ABOVE)).verdict == NOT


def test_values_that_do_not_differ_decide_nothing_in_three_trials():
    assert judging.tested(Part([side(7.0, 7.0, 7.0)], *claimed_range(5, "above"))).verdict == OPEN
    alike = judging.tested(Part([side(*[7.0] * 6)], *claimed_range(5, "above")))
    assert alike.verdict == REPLICATED and alike.interval.low < alike.interval.high


def test_a_trial_with_nothing_below_is_one_as_claimed_and_not_left_out():
    above, below = side(*[5.0] * 6, kind=Kind.POSITIVE), side(0, 1, 1, 1, 1, 1)
    found = judging.together([Part([above, below], *ABOVE)])
    assert (found.as_claimed, found.interval.trials, found.verdict) == (True, 6, REPLICATED)


def test_events_against_none_at_all_are_more():
    timeouts, none = side(*[5000.0] * 6, kind=Kind.COUNT), side(*[0.0] * 6, kind=Kind.COUNT)
    for sides, verdict in (([timeouts, none], REPLICATED), ([none, timeouts], NOT)):
        found = judging.together([Part(sides, *ABOVE)])
        assert (found.as_claimed, found.interval.trials, found.verdict) == (True, 6, verdict)


def test_a_time_that_is_printed_as_zero_has_no_logarithm():
    times = replace(side(0, 0.1, 0.1), step=0.1)
    found = judging.together([Part([times], *judging.claimed_range(1, "below"))])
    assert (found.as_claimed, found.interval.trials, found.verdict) == (True, 3, OPEN)


@pytest.mark.parametrize(
    ("ratios", "claimed", "direction"),
    [
        ((9, 10, 11), (1.4, 4), LARGER),
        ((1.2, 1.21, 1.22), (1.4, 4), SMALLER),
        ((0.1, 0.11, 0.12), (0.25, 0.7), LARGER),
        ((0.9, 0.91, 0.92), (0.25, 0.7), SMALLER),
        ((0.9, 0.91, 0.92), (1.4, 4), NOT),
    ],
)
def test_a_size_that_is_missed_says_to_which_side(ratios, claimed, direction):
    found = judging.tested(Part([side(*ratios), side(1, 1, 1)], *claimed))
    assert (found.verdict, found.direction) == (NOT, direction)


def test_a_threshold_within_the_repeatability_is_named():
    near = judging.tested(Part([side(1.2, 1.24, 1.28)], *claimed_range(1.25, "above")))
    far = judging.tested(Part([side(1.2, 1.24, 1.28)], *claimed_range(2, "above")))
    assert near.on_edge and not far.on_edge


# How a rule of several parts is


def test_each_part_must_hold_but_at_no_more_than_the_full_level():
    clear = Part([side(1.1, 1.12, 1.14), side(1, 1, 1)], *ABOVE)
    assert judging.together([clear] * 20).verdict == REPLICATED
    unclear = Part([side(0.9, 1.12, 1.5), side(1, 1, 1)], *ABOVE)
    assert judging.together([clear, unclear]).verdict == OPEN


def test_the_error_of_a_verdict_is_the_level_at_which_it_would_fall():
    part = Part([side(1.1, 1.12, 1.14), side(1, 1, 1)], *ABOVE)
    found = judging.together([part])
    error = judging.error(found)
    values = [1.1, 1.12, 1.14]
    assert trial_tests.mean_interval(values, error).low > 1
    assert trial_tests.mean_interval(values, error / 1.2).low < 1
    wrong = Part([side(0.8, 0.81, 0.82), side(1, 1, 1)], *ABOVE)
    alone, of_two = (judging.error(judging.together(parts)) for parts in ([wrong], [wrong, part]))
    assert of_two == pytest.approx(2 * alone)


def test_verdicts_are_marked_that_fall_when_all_are_tested_together():
    errors = [0.0001, 0.01, 0.02, 0.049, None]
    assert trial_tests.marks(errors) == ["", "", trial_tests.HOLM, trial_tests.RATE, ""]
    assert trial_tests.marks([]) == []
    assert trial_tests.marks([0.04]) == [""]


def test_a_verdict_is_a_test_if_it_has_trials_enough():
    for word in (OPEN, NOT, REPLICATED):
        assert claims.is_tested(Verdict(word, Interval(3, 1.0)))
        assert not claims.is_tested(Verdict(word, Interval(2, 1.0)))
    fragile = Verdict(NOT, Interval(3, 1.0), on_edge=True, fragile="fragile")
    assert verdict_words.remarks(fragile) == ["fragile", verdict_words.ON_EDGE]


# Which data it judges


def test_code_changes_no_verdict_on_committed_data_unseen():
    committed = pl.read_parquet(ROOT / "figures" / "reference" / "claims.parquet")
    made = ledger.frame(claims.ledger("reference"))
    shown = [frame.sort("claim").select("claim", "then", "now") for frame in (made, committed)]
    assert_frame_equal(*shown)


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """Return a function that plants bytes per message of ETS, and returns the claim on them."""
    monkeypatch.setattr(table_files, "ROOT", tmp_path)
    monkeypatch.setattr(archive, "ROOT", tmp_path)
    claim = next(one for one in published.claims() if one.id == "day-ets-bytes")

    def planted(sizes: list[float]) -> dict:
        write(tmp_path, "smoke", "storage", [
            {"server": "otp-store", "variant": "ets", "configuration": "ets", "body_bytes": 100,
             "n": n, "messages": held, "runtime_bytes": int(held * size)}
            for n, size in enumerate(sizes, 1) for held in (0, 1000)
        ])  # fmt: skip
        return claims.verdict("smoke", claim, "now")

    return planted


def test_a_dataset_is_judged_once_after_all_trials(stored):
    # Their range lies above the claimed 330, as noise's would a quarter of the time.
    assert stored([336.0, 345.0, 352.0]).verdict == OPEN
    clear = [341.0, 346.0, 352.0]
    found = stored(clear)
    assert found.verdict == NOT and found.interval.trials == 3 and found.interval.low > 330
    # All trials count.
    assert stored([*clear, 200.0, 500.0]).verdict == OPEN
    assert stored([348.0]).verdict == OPEN
