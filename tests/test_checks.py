"""Findings: their verdicts, the exit status and the text."""

import pytest

from deathmatch.checks import findings
from deathmatch.checks.findings import PASSED, REJECTED, SHOWN, UNCHECKED, Finding

ODD = [
    Finding("EVEN", "reject", f"item {n}", f"{n} is odd", "count again") for n in range(1, 17, 2)
]
LARGE = Finding("SMALL", "warn", "item 12", "12 is large", "subtract 3")
DARK = Finding("BLIND", "unchecked", "item 9", "it is dark")


@pytest.mark.parametrize(("found", "waives", "verdicts", "status"), [
    ([], {}, [], PASSED),
    ([LARGE, ODD[0]], {}, ["reject", "warn"], REJECTED),
    ([ODD[0]], {"EVEN": "odd ones are fine"}, ["waived"], PASSED),
    ([LARGE], {}, ["warn"], PASSED),
    ([LARGE, DARK], {}, ["unchecked", "warn"], UNCHECKED),
    ([DARK, ODD[0]], {}, ["reject", "unchecked"], REJECTED),
])  # fmt: skip
def test_verdicts(found, waives, verdicts, status):
    ordered = findings.sorted_findings(found, waives)
    assert [one.verdict for one in ordered] == verdicts
    assert findings.status(ordered) == status


def test_the_text_shows_the_worst_first_and_no_more_than_a_few():
    ordered = findings.sorted_findings([LARGE, *ODD])
    said = findings.report(ordered, 60)
    assert said.index("rejected: EVEN, 8 found") < said.index("warning: SMALL, 1 found")
    assert f"and {8 - SHOWN} more" in said and "13 is odd" not in said
    assert said.count("do: count again") == 1 and "do: subtract 3" in said
    assert findings.counts(ordered) == "8 rejected, 1 warning"
    waived = findings.report(findings.sorted_findings(ODD, {"EVEN": "odd ones are fine"}), 60)
    assert "waived: odd ones are fine" in waived and "do: " not in waived
