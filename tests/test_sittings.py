"""A dataset in sittings: planned, judged, refused and repeated, and when it is complete."""

from dataclasses import replace
from pathlib import Path

import pytest

from deathmatch.analysis import claims, findings
from deathmatch.data import sittings
from deathmatch.data.sittings import Attempt
from deathmatch.errors import UserError
from deathmatch.plan import validation_errors
from deathmatch.plan.dataset import Dataset

GRIDS = [{"servers": ["null"]}, {"servers": ["yucan"], "trials": 5}]
WHOLE = {
    "title": "a test", "trials": 3, "seed": 1,
    "experiments": {"backlog": {"rates_rps": [100], "duration_s": 5, "grids": GRIDS}},
}  # fmt: skip
FIRST = {"name": "first", "experiment": "backlog", "rounds": [1, 3]}
SECOND = {"name": "second", "experiment": "backlog", "rounds": [4, 5]}
MEASURED = Attempt(
    "first", 1, "2026-11-28T10:00:00Z", "2026-11-28T11:30:00Z", "A, family 1 model 2", "6.1", "c1",
    1.5, 40, {"stolen": 0.001}, "",
)  # fmt: skip


def planned(**keys) -> Dataset:
    return validation_errors.validated(Dataset, WHOLE | keys, "mine.toml", name="mine")


def test_each_round_has_its_sitting():
    spec = planned(sittings=[FIRST, SECOND])
    assert [spec.sitting_of("backlog", n) for n in range(1, 7)] == [
        "first", "first", "first", "second", "second", None,
    ]  # fmt: skip
    whole = planned(sittings=[{"name": "all", "experiment": "backlog"}])
    assert whole.sitting_of("backlog", 5) == "all" and planned().sitting_of("backlog", 1) is None
    apart = [FIRST | {"rounds": [1, 3, 5]}, SECOND | {"rounds": [2]}, SECOND | {"rounds": [4]}]
    apart[2] = apart[2] | {"name": "third"}
    assert planned(sittings=apart).sitting_of("backlog", 4) == "third"


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ([FIRST, FIRST | {"experiment": "c10k", "name": "x"}], "no experiment 'c10k'; it has back"),
        ([FIRST, SECOND | {"rounds": [3, 5]}], "round 3 of backlog is in two sittings, in 'first'"),
        ([FIRST], "round 4 of backlog is in no sitting"),
        ([FIRST, SECOND | {"rounds": [4, 6]}], "backlog has rounds 1 to 5, and no round 6"),
        ([FIRST, SECOND | {"name": "first"}], "two sittings have the name 'first'"),
    ],
)
def test_a_plan_that_is_no_partition_is_refused(wrong, what):
    with pytest.raises(UserError) as said:
        planned(sittings=wrong)
    assert str(said.value).startswith("mine.toml: ") and what in str(said.value)


PLAN = """
title = "a test"
trials = 5
seed = 1
stop_after_h = 4

[[sittings]]
name = "first"
experiment = "backlog"
rounds = [1, 3]

[[sittings]]
name = "second"
experiment = "backlog"
rounds = [4, 5]

[experiments.backlog]
rates_rps = [100]
duration_s = 5

[[experiments.backlog.grids]]
servers = ["null"]
"""


@pytest.fixture
def begun(tmp_path):
    """A function that adds attempts to an empty dataset of two sittings, and returns its root."""
    for folder in ("config/datasets", "data/mine"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "config" / "datasets" / "mine.toml").write_text(PLAN)

    def add(*tried: Attempt) -> Path:
        for one in tried:
            sittings.add("mine", one, tmp_path)
        return tmp_path

    return add


def test_a_dataset_is_complete_once_all_its_sittings_are_in(begun):
    root = begun(replace(MEASURED, refused="stolen"))
    assert sittings.lacking("mine", root) == ["first", "second"]
    begun(replace(MEASURED, attempt=2))
    assert sittings.lacking("mine", root) == ["second"] and sittings.accepted("mine", root)
    begun(replace(MEASURED, sitting="second", hours=0.5))
    assert sittings.lacking("mine", root) == []
    assert [one.attempt for one in sittings.attempts("mine", root)] == [1, 2, 1]


def test_after_the_hours_of_the_stop_rule_what_there_is_is_complete(begun):
    """Hours of refused sittings were measured too."""
    root = begun(MEASURED, replace(MEASURED, attempt=2, hours=2.4, refused="stolen"))
    assert sittings.lacking("mine", root) == ["first", "second"]
    begun(replace(MEASURED, attempt=3, hours=0.1))
    assert sittings.lacking("mine", root) == []


@pytest.mark.parametrize("decide", [claims.ledger, findings.evaluate])
def test_nothing_is_decided_before(monkeypatch, decide):
    monkeypatch.setattr(sittings, "lacking", lambda dataset: ["second", "third"])
    with pytest.raises(UserError, match="it lacks 2 sittings: second, third"):
        decide("reference")
