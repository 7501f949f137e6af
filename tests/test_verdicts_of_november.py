"""The ledger beside that of November 2026, before rules became lists of comparisons.

Every verdict is as it was, or stands here with what it is now, and in experiments/CHANGELOG.md.
"""

import json

import pytest
from conftest import ROOT

from deathmatch.analysis import claims, published

BEFORE = json.loads((ROOT / "tests" / "data" / "verdicts-of-november.json").read_text())
# Then and now.
CHANGED = {
    "walkin-backlog-5-to-128-one-core": ("inconclusive", "inconclusive"),
    "walkin-chart-order": ("not run", "not replicated"),
    "walkin-epoll-faster-with-many-descriptors": ("replicated", "replicated"),
    "ostinelli-faster-servers-err-later": ("not run", "condition not reached"),
    "day-webob-adds-overhead-one-process": ("not replicated", "not replicated"),
}


@pytest.fixture(scope="module")
def ledger() -> dict[str, claims.Entry]:
    return {entry.claim: entry for entry in claims.ledger("reference")}


def test_the_ledger_has_the_claims_that_it_had_and_no_other(ledger):
    assert ledger.keys() == BEFORE.keys() and len(ledger) + len(published.untested()) == 115


@pytest.mark.parametrize("claim", BEFORE)
def test_a_verdict_is_as_it_was_or_its_change_is_known(ledger, claim):
    dataset, *before = BEFORE[claim]
    made = ledger[claim]
    assert made.dataset == dataset
    expected = CHANGED.get(claim, tuple(before))
    assert (made.then.verdict, made.now.verdict) == expected


def test_each_change_is_told():
    text = (ROOT / "experiments" / "CHANGELOG.md").read_text()
    entry = text[text.index("## Claims are lists of comparisons") :].split("\n## ")[0]
    assert all(f"`{claim}`" in entry for claim in CHANGED)
    left = [one.id for one in published.untested()]
    assert all(f"`{name}`" in entry for name in left if name.endswith(("unfair", "8000")))
