"""Entries of the ledger: the facts of a claim, and the evidence of its verdicts."""

from dataclasses import replace

from deathmatch.analysis import claims, judging, published
from deathmatch.analysis.ledger import Entry, Need, Side, Verdict
from deathmatch.analysis.stats import Interval
from deathmatch.paper import claim_rows

SIDES = (
    Side("Yucan, backlog 128", Interval(3, 8000.0, 7000.0, 9000.0),
         "data/tiny/backlog/raw.tar.xz: yucan/backlog=128"),
    Side("Yucan, backlog 5", Interval(3, 4000.0, 3900.0, 4100.0),
         "data/tiny/backlog/raw.tar.xz: yucan/backlog=5"),
)  # fmt: skip
NOW = Verdict(
    judging.REPLICATED, Interval(3, 2.0, 1.8, 2.2), direction=judging.REPLICATED,
    quantity="reply rate in overload", unit="req/s", sides=SIDES,
)  # fmt: skip
NEED = Need("4 CPUs of the server beyond the client's", "1", met=False)
THEN = Verdict(judging.UNREACHED, needs=(NEED,))


def entry(name: str) -> Entry:
    """Return a claim as nobody measured it."""
    (claim,) = (claim for claim in published.claims() if claim.id == name)
    return claims.entry("never-measured", claim)


def test_a_claim_opens_to_its_rule_and_the_evidence_of_each_verdict():
    measured = entry("walkin-backlog-5-to-128-all-cores")
    opened = claim_rows.details(replace(measured, then=THEN, now=NOW, same=False))
    assert "1.41 to 4 times" in dict(opened["facts"])["Rule"]
    then, now = opened["verdicts"]
    assert then["heading"] == f"Then: {judging.UNREACHED}"
    assert any(text.endswith("there: 1 (not met).") for text in then["lines"])
    text = "\n".join(now["lines"])
    assert "reply rate in overload (req/s), Yucan, backlog 128 over Yucan, backlog 5" in text
    assert "8\u202f000 [7\u202f000, 9\u202f000] req/s, n = 3" in text
    assert now["raw"] == [side.raw for side in SIDES]


def test_a_claim_that_was_not_run_says_why():
    opened = claim_rows.details(entry("day-ets-bytes"))
    assert [verdict["heading"] for verdict in opened["verdicts"]] == ["Then and now: not run"]
    assert opened["verdicts"][0]["lines"][-1] == "Not run: the dataset has no experiment storage."
