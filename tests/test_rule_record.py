"""Rules are recorded before data, and later changes are seen."""

from pathlib import Path

import pytest

from deathmatch.analysis import published, rule_changes
from deathmatch.data import rule_record

RULES = """
[[claim]]
id = "a"
experiment = "backlog"
claim = "More is more."
rule = { kind = "ratio", threshold = 1.0, text = "Above 1." }
needs.rates = { at_least = 3, why = "two are few" }
"""


@pytest.fixture
def root(tmp_path) -> Path:
    """Return a checkout with one claim and an empty dataset."""
    file = tmp_path / rule_record.CLAIMS
    file.parent.mkdir(parents=True)
    file.write_text(RULES)
    (tmp_path / "data" / "mine").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("Above 1.", "More than 1.", True),
        ("two are few", "a rank wants three", True),
        ("More is more.", "More is better.", True),
        ("threshold = 1.0", "threshold = 1.1", False),
        ("at_least = 3", "at_least = 4", False),
        ('"backlog"', '"dynamic"', False),
    ],
)
def test_a_hash_is_of_what_decides_a_claim(old, new, same):
    assert (rule_record.hashes(RULES) == rule_record.hashes(RULES.replace(old, new))) is same


def test_the_rules_of_the_first_trial_stay_recorded(root):
    rule_record.keep("mine", "abc", root)
    first = rule_record.read("mine", root)
    assert first.commit == "abc" and first.rules == rule_record.hashes(RULES)
    (root / rule_record.CLAIMS).write_text(RULES.replace("1.0", "2.0"))
    rule_record.keep("mine", "def", root)
    assert rule_record.read("mine", root) == first


def test_a_dataset_that_was_begun_without_a_record_gets_none(root):
    trial = root / "data" / "mine" / "backlog" / "null" / "x" / "1"
    trial.mkdir(parents=True)
    (trial / "trial.json").write_text("{}")
    rule_record.keep("mine", "abc", root)
    assert rule_record.read("mine", root) is None


@pytest.mark.parametrize("dataset", ["reference", "first"])
def test_each_change_after_a_committed_dataset_is_listed(dataset):
    record, listed = rule_record.read(dataset), rule_changes.changes(dataset)
    known = {claim["id"] for claim in published.claims()}
    frozen = rule_changes.frozen(dataset)
    assert frozen.keys() == known and record.at < "2026-11-25"
    # A rule that is not the recorded one was changed, or written, in a commit that is listed.
    changed = {name for name, same in frozen.items() if not same}
    assert changed <= set(listed["claim"]), sorted(changed - set(listed["claim"]))
    for row in rule_changes.turned(listed).iter_rows(named=True):
        assert row["why"] and (row["then_before"], row["now_before"]) != (
            row["then_after"], row["now_after"],
        )  # fmt: skip
