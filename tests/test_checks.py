"""The rule engine: what rules say, their verdicts, the exit status and the text."""

import pytest

from deathmatch.checks import report as checks
from deathmatch.checks.rule import Finding, Rules, Unknown, check_names
from deathmatch.errors import UserError

NUMBERS = Rules("count again", lambda evidence: ((f"item {n}", n) for n in evidence))


@NUMBERS.add("EVEN", "reject", "arithmetic")
def even(number: int):
    """Every number
    is even.

    This paragraph is no part of the statement.
    """
    if number % 2:
        yield f"{number} is odd"


@NUMBERS.add("SMALL", "warn", "arithmetic", since=2)
def small(number: int):
    """Every number is below ten."""
    if number < 0:
        yield Unknown("it is negative")
    elif number >= 10:
        yield Finding(f"{number} is large", remedy=f"subtract {number - 9}")


def ask(*numbers: int, **waived: str) -> checks.Report:
    results = [checks.ask(rule, numbers, waived.get(rule.id, "")) for rule in NUMBERS.rules]
    return checks.Report(tuple(results))


def test_a_rule_is_a_documented_function():
    assert even.statement == "Every number is even." and even.remedy == "count again"
    assert [rule.id for rule in NUMBERS.rules] == ["EVEN", "SMALL"] and small.since == 2
    assert [(f.where, f.what) for f in even.seen([1, 2, 3])] == [
        ("item 1", "1 is odd"), ("item 3", "3 is odd"),
    ]  # fmt: skip


@pytest.mark.parametrize(("numbers", "waived", "verdicts", "status"), [
    ([2, 4], {}, ["passed", "passed"], checks.PASSED),
    ([3], {}, ["reject", "passed"], checks.REJECTED),
    ([3], {"EVEN": "odd ones are fine"}, ["waived", "passed"], checks.PASSED),
    ([12], {}, ["passed", "warn"], checks.PASSED),
    ([-2], {}, ["passed", "unchecked"], checks.PASSED),
    ([-2, 12], {}, ["passed", "warn"], checks.PASSED),
])  # fmt: skip
def test_verdicts(numbers, waived, verdicts, status):
    report = ask(*numbers, **waived)
    assert [result.verdict for result in report.results] == verdicts
    assert report.status == status


def test_a_rejecting_rule_that_could_not_look_leaves_the_evidence_unchecked():
    rules = Rules()
    rule = rules.add("BLIND", "refuse", "")(lambda evidence: [Unknown("it is dark")])
    assert checks.Report((checks.ask(rule, None),)).status == checks.UNCHECKED
    assert checks.ask(even, [], older=3).verdict == "not asked"


def test_the_text_shows_the_worst_first_and_no_more_than_a_few():
    report = ask(12, *range(1, 17, 2))
    said = report.text(60)
    assert said.index("rejected: EVEN, 8 found") < said.index("warning: SMALL, 4 found")
    assert f"and {8 - checks.SHOWN} more" in said and "13 is odd" not in said
    assert "do: count again" in said and "do: subtract 3" in said
    assert "Every number is even. [arithmetic]" in said
    assert [rule.id for rule, _ in report.findings] == ["EVEN"] * 8 + ["SMALL"] * 4
    assert report.counts() == "1 rejected, 1 warning"
    waived = ask(3, EVEN="odd ones are fine")
    assert "waived: odd ones are fine" in waived.text(60) and "do: " not in waived.text(60)


def test_a_misspelt_rule_is_named():
    with pytest.raises(UserError, match="did you mean 'EVEN'") as raised:
        check_names(NUMBERS.rules, ["EVNE"], "here", "numbers")
    assert "'EVNE' of numbers" in str(raised.value)
