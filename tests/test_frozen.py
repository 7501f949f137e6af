"""The rules of a dataset that says so are those that were frozen before its first trial."""

import datetime
import shutil

import pytest

from deathmatch.analysis import claims, findings, frozen, published
from deathmatch.errors import UserError
from deathmatch.plan import files
from deathmatch.plan.dataset import Dataset

DAY = datetime.date(2026, 12, 1)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A copy of the rules, and a dataset whose rules are frozen."""
    copy = tmp_path / "published"
    copy.mkdir()
    for module, name in ((published, "CLAIMS"), (published, "UNTESTED"), (findings, "FILE")):
        there = copy / getattr(module, name).name
        shutil.copy(getattr(module, name), there)
        monkeypatch.setattr(module, name, there)
    monkeypatch.setattr(frozen, "FILE", copy / "frozen.toml")
    says = files.dataset("quick").model_copy(update={"frozen_rules": True})
    monkeypatch.setattr(frozen.files, "dataset", lambda name, root=None: says)
    return copy


def test_a_change_after_the_freeze_is_refused_with_the_day(folder):
    with pytest.raises(UserError, match="are not frozen"):
        claims.ledger("quick")
    frozen.FILE.write_text(frozen.text("quick", DAY))
    frozen.check("quick")
    published.CLAIMS.write_text(published.CLAIMS.read_text().replace("low = 1.07", "low = 1.08", 1))
    with pytest.raises(UserError, match="frozen on 2026-12-01") as refused:
        claims.ledger("quick")
    assert "frozen.toml" in refused.value.where and refused.value.remedy
    frozen.FILE.write_text(frozen.text("quick", DAY).replace('"quick"', '"tour"'))
    with pytest.raises(UserError, match="dataset quick"):
        frozen.check("quick")


def test_a_freeze_counts_the_tests_and_names_what_is_not_tested(folder):
    frozen.FILE.write_text(frozen.text("quick", DAY))
    known = frozen.read()
    decided = published.claims()
    then_too = [claim for claim in decided if not claim.same]
    assert known.tests == len(decided) + len(then_too) + len(findings.load())
    assert {one.id for one in published.untested()} == {*known.untested}
    assert not {*known.untested} & {claim.id for claim in decided}


def test_a_key_that_no_file_sets_is_no_part_of_the_rules(folder, monkeypatch):
    class Wider(Dataset):
        one_more: bool = False

    raw = files.written("dataset", "quick")
    before, wider = frozen.rules_hash("quick"), Wider(**raw, frozen_rules=True)
    monkeypatch.setattr(frozen.files, "dataset", lambda name, root=None: wider)
    assert frozen.rules_hash("quick") == before


def test_the_rules_of_the_reference_are_those_that_were_frozen():
    assert files.dataset("reference").frozen_rules
    frozen.check("reference")


def test_a_dataset_without_the_key_needs_no_freeze():
    assert not files.dataset("quick").frozen_rules
    frozen.check("quick")
    frozen.check("never-measured")
