"""Rules are recorded before data, and later changes are seen."""

from dataclasses import replace
from pathlib import Path

import pytest

from deathmatch.analysis import published
from deathmatch.data import rule_record

RULES = """
[then]
walkin2009 = { tornado = { server = "tornado-1" }, yaws = { configuration = "production" } }

[now]
walkin2009 = { yucan = { server = "yucan-otp29" } }

[together]
erlang = ["yaws", "yucan"]

[[claim]]
id = "a"
source = "walkin2009"
experiment = "backlog"
claim = "More is more."
rule.kind = "ratio"
rule.threshold = 1.0
rule.text = "Above 1."
rule.a = { server = "tornado" }
rule.b = { server = "yucan" }
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


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ('"tornado-1"', '"tornado-0.2"', False),
        ('"yucan-otp29"', '"yucan-otp30"', False),
        # What no server of the claim has anything to do with.
        ('"production"', '"defaults"', True),
        ('["yaws", "yucan"]', '["inets", "yaws", "yucan"]', True),
        ('["yaws", "yucan"]', '["tornado", "yaws", "yucan"]', False),
        ("threshold = 1.0", "threshold = 1.1", True),
    ],
)
def test_a_hash_is_of_what_stands_for_the_servers_of_a_claim(old, new, same):
    assert old in RULES
    changed = RULES.replace(old, new)
    assert (rule_record.stand_ins(RULES) == rule_record.stand_ins(changed)) is same


def test_a_stand_in_that_changed_after_the_first_trial_is_seen(root):
    rule_record.keep("mine", "abc", root)
    record = rule_record.read("mine", root)
    changed = RULES.replace('"tornado-1"', '"tornado-0.2"')
    for text, as_then in ((RULES, True), (changed, False)):
        known = rule_record.both_hashes(text, record)
        assert (known["a"] == record.recorded("a")) is as_then
    # A record from before stand-ins were kept knows the rule alone.
    older = replace(record, stand_ins={})
    assert rule_record.both_hashes(changed, older)["a"] == older.recorded("a")


def measure(root: Path) -> None:
    trial = root / "data" / "mine" / "backlog" / "null" / "x" / "1"
    trial.mkdir(parents=True)
    (trial / "trial.json").write_text("{}")


def test_the_rules_of_the_first_trial_stay_recorded(root):
    rule_record.keep("mine", "abc", root)
    first = rule_record.read("mine", root)
    assert first.commit == "abc" and first.rules == rule_record.hashes(RULES)
    measure(root)
    (root / rule_record.CLAIMS).write_text(RULES.replace("1.0", "2.0"))
    rule_record.keep("mine", "def", root)
    assert rule_record.read("mine", root) == first


def test_a_run_without_a_trial_leaves_no_rules_that_stay(root):
    rule_record.keep("mine", "abc", root)
    (root / rule_record.CLAIMS).write_text(RULES.replace("1.0", "2.0"))
    rule_record.keep("mine", "def", root)
    assert rule_record.read("mine", root).commit == "def"


def test_a_dataset_that_was_begun_without_a_record_gets_none(root):
    measure(root)
    rule_record.keep("mine", "abc", root)
    assert rule_record.read("mine", root) is None


def test_the_committed_dataset_says_which_rules_changed_after_its_first_trial():
    frozen = rule_record.frozen("reference")
    assert frozen.keys() == {claim["id"] for claim in published.claims()}
    assert rule_record.read("reference").at < "2026-11-25"
    assert {rule_record.word(frozen, claim) for claim in frozen} == {"as then", "changed"}
    assert rule_record.word(rule_record.frozen("quick"), "walkin-fast") == "not recorded"
