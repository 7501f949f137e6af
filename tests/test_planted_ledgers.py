"""False verdicts of planted ledgers: `bench/ledgers.py` in small, for each kind of rule."""

import math

import pytest
from conftest import bench

ledgers = bench("ledgers")
COUNT = 80
ERROR = 0.05


@pytest.fixture(scope="module", params=[3, 9])
def simulated(request):
    """Return the shares of verdicts of planted ledgers of so many trials."""
    return ledgers.simulated(COUNT, request.param, seed=40)


def most(share: float) -> float:
    """Return the share that chance exceeds one time in a thousand: three deviations."""
    return share + 3.1 * math.sqrt(share * (1 - share) / COUNT)


def test_no_kind_of_rule_gives_more_false_verdicts_than_promised(simulated):
    shares, any_false = simulated
    for row in shares.iter_rows(named=True):
        assert row["false"] <= most(ERROR), row
    # Holm's, over all rules of the ledger.
    assert any_false <= most(ERROR)


def test_away_from_the_threshold_verdicts_are_on_the_side_of_the_truth(simulated):
    shares, _ = simulated
    assert (shares["wrong"] <= most(ERROR / 2)).all()
    paired = shares.filter(rule="ratio").row(0, named=True)
    # A drift of the machine is in both sides of a pair.
    assert paired["right"] > 0.8


def test_what_happens_or_not_is_decided_after_six_trials_alone():
    few, _ = ledgers.simulated(3, 5, seed=1)
    many, _ = ledgers.simulated(20, 9, seed=1)
    exact = ["count", "outcome"]
    decided = [frame.filter(frame["rule"].is_in(exact))["right"].max() for frame in (few, many)]
    assert decided[0] == 0 and decided[1] > 0.5
