"""False verdicts of planted ledgers: `bench/ledgers.py` in small, for each kind of rule."""

import math

import pytest
from conftest import bench

ledgers = bench("ledgers")
COUNT = 80
ERROR = 0.05


@pytest.fixture(scope="module")
def simulated():
    """Return the shares of verdicts of planted ledgers of three trials."""
    return ledgers.simulated(COUNT, 3, seed=40)


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
