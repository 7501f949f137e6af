"""The statistical tests of claims: their error, their intervals, and their verdicts on rules."""

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from conftest import ROOT
from plant import write

from deathmatch.analysis import claims, findings, judging, ledger, published, trial_tests
from deathmatch.analysis.by_trial import Values
from deathmatch.analysis.judging import LARGER, NOT, OPEN, REPLICATED, SMALLER, Part, claimed_range
from deathmatch.data import archive, table_files
from deathmatch.quantities.quantity import Kind

RUNS = 1000
ABOVE = claimed_range(1, "above")


def side(*values: float, **more) -> Values:
    return Values(dict(enumerate(values, 1)), **more)


# Intervals


def test_noise_at_the_threshold_is_called_a_difference_as_rarely_as_promised():
    series = np.exp(np.random.default_rng(3).normal(0, 0.2, (RUNS, 3)))
    found = [trial_tests.mean_interval(values, trial_tests.ERROR) for values in series]
    wrong = sum(known.low > 1 or known.high < 1 for known in found) / RUNS
    # Three standard errors of the simulation itself.
    allowed = 3 * math.sqrt(trial_tests.ERROR / RUNS)
    assert wrong == pytest.approx(trial_tests.ERROR, abs=allowed)
    halves = np.log([known.high for known in found]) - np.log(series).mean(axis=1)
    of_spread = halves / np.log(series).std(axis=1, ddof=1)
    assert of_spread == pytest.approx(trial_tests.half_width(3, trial_tests.ERROR))


def test_an_interval_depends_on_the_kind_of_its_values():
    known = trial_tests.mean_interval((1, 2, 32), 0.05)
    assert known.estimate == pytest.approx(4)
    assert math.sqrt(known.low * known.high) == pytest.approx(known.estimate)
    share = trial_tests.mean_interval((0.2, 0.9, 0.99), 0.01, Kind.SHARE)
    assert 0 < share.low < share.estimate < share.high < 1


def test_values_recorded_in_steps_have_the_width_of_a_step():
    known = trial_tests.mean_interval((425.8, 425.8, 425.8), 0.05, step=0.04)
    assert 425.8 - 0.2 < known.low < 425.8 - 0.02 and 425.8 + 0.02 < known.high < 425.8 + 0.2


# Verdicts on a part


@pytest.mark.parametrize(("trials", "verdict"), [(3, OPEN), (5, OPEN), (6, REPLICATED)])
def test_counts_are_judged_by_the_trials_that_are_as_claimed(trials, verdict):
    none = side(*[0.0] * trials, kind=Kind.COUNT)
    found = judging.tested(Part([none], *claimed_range(0.5, "below")))
    assert (found.verdict, found.as_claimed) == (verdict, True)
    assert 0 <= found.interval.low < found.interval.high == 1


def test_values_that_do_not_differ_decide_nothing_in_three_trials():
    assert trial_tests.unpaired_interval([2, 2, 2], [1, 1, 1], 0.05).low is None
    assert judging.tested(Part([side(7.0, 7.0, 7.0)], *claimed_range(5, "above"))).verdict == OPEN
    alike = judging.tested(Part([side(*[7.0] * 6)], *claimed_range(5, "above")))
    assert alike.verdict == REPLICATED and alike.interval.low < alike.interval.high


def test_a_ratio_over_zero_counts_as_claimed():
    above, below = side(*[5.0] * 6, kind=Kind.POSITIVE), side(0, 1, 1, 1, 1, 1)
    found = judging.together([Part([above, below], *ABOVE)])
    assert (found.as_claimed, found.interval.trials, found.verdict) == (True, 6, REPLICATED)


def test_events_compared_with_none_are_more():
    timeouts, none = side(*[5000.0] * 6, kind=Kind.COUNT), side(*[0.0] * 6, kind=Kind.COUNT)
    of_sides = [([timeouts, none], REPLICATED), ([none, timeouts], NOT), ([none, none], NOT)]
    for sides, verdict in of_sides:
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
def test_a_size_that_is_missed_has_a_direction(ratios, claimed, direction):
    found = judging.tested(Part([side(*ratios), side(1, 1, 1)], *claimed))
    assert (found.verdict, found.direction) == (NOT, direction)


def test_a_threshold_within_the_repeatability_is_named():
    near, far = (
        judging.tested(Part([side(1.2, 1.24, 1.28)], *claimed_range(bound, "above")))
        for bound in (1.25, 2)
    )
    assert near.on_edge and not far.on_edge


# Verdicts on a rule of several parts


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


def test_verdicts_that_fall_under_the_correction_are_marked():
    errors = [0.0001, 0.01, 0.02, 0.049, None]
    assert trial_tests.marks(errors) == ["", "", trial_tests.HOLM, trial_tests.RATE, ""]
    assert trial_tests.marks([]) == []
    assert trial_tests.marks([0.04]) == [""]


# The data that are judged


def test_verdicts_on_committed_data_are_the_committed_ones():
    committed = pl.read_parquet(ROOT / "figures" / "reference" / "claims.parquet")
    entries, results = claims.family("reference")
    assert all(one.standing in (findings.HOLDS, findings.FAILS) for one in results)
    made = ledger.frame(entries)
    assert set(made.select("claim", "then", "now").rows()) == set(
        committed.select("claim", "then", "now").rows()
    )


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
    # Their range lies above the claimed 330; that of noise would in a quarter of all cases.
    assert stored([336.0, 345.0, 352.0]).verdict == OPEN
    clear = [341.0, 346.0, 352.0]
    found = stored(clear)
    assert found.verdict == NOT and found.interval.trials == 3 and found.interval.low > 330
    # All trials count.
    assert stored([*clear, 200.0, 500.0]).verdict == OPEN
    assert stored([348.0]).verdict == OPEN
