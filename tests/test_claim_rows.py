"""Rows of the ledger: the facts of a claim, and the evidence of its verdicts."""

import polars as pl
import pytest

from deathmatch.analysis import claims, judging, published
from deathmatch.paper import claim_rows

SIDES = [
    {"what": "Yucan, backlog 128", "median": 8000.0, "low": 7000.0, "high": 9000.0, "trials": 3,
     "raw": "data/tiny/backlog/raw.tar.xz: yucan/backlog=128"},
    {"what": "Yucan, backlog 5", "median": 4000.0, "low": 3900.0, "high": 4100.0, "trials": 3,
     "raw": "data/tiny/backlog/raw.tar.xz: yucan/backlog=5"},
]  # fmt: skip
NEED = {"needed": "4 CPUs of the server beyond the client's", "there": "1", "met": False}
FOUND = {
    "now": judging.REPLICATED, "now_effect": 2.0, "now_low": 1.8, "now_high": 2.2, "now_trials": 3,
    "now_quantity": "highest reply rate", "now_unit": "req/s", "now_sides": SIDES,
    "now_direction": judging.REPLICATED, "now_why": "", "same": False,
    "then": judging.UNREACHED, "then_needs": [NEED | {"always": True}],
}  # fmt: skip


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    """Return three claims as nobody measured them, the first of them with both verdicts."""
    chosen = {"walkin-backlog-5-to-128-all-cores", "ostinelli-order", "day-ets-bytes"}
    made = [claims.row_of("never-measured", c) for c in published.claims() if c["id"] in chosen]
    made[0] |= FOUND
    return pl.DataFrame(made, schema=claims.LEDGER).with_columns(name="source")


def test_a_claim_opens_to_its_rule_and_the_evidence_of_each_verdict(rows):
    opened = claim_rows.details(rows.row(0, named=True))
    assert "1.41 to 4 times" in dict(opened["facts"])["Rule"]
    then, now = opened["verdicts"]
    assert then["heading"] == f"Then: {judging.UNREACHED}"
    assert any(text.endswith("there: 1 (not met).") for text in then["lines"])
    text = "\n".join(now["lines"])
    assert "highest reply rate (req/s), Yucan, backlog 128 over Yucan, backlog 5" in text
    assert "8\u202f000 [7\u202f000, 9\u202f000] req/s, n = 3" in text
    assert now["raw"] == [side["raw"] for side in SIDES]


def test_a_claim_that_was_not_run_says_why(rows):
    opened = claim_rows.details(rows.row(2, named=True))
    assert [verdict["heading"] for verdict in opened["verdicts"]] == ["Then and now: not run"]
    assert opened["verdicts"][0]["lines"][-1] == "Not run: the dataset has no experiment storage."
