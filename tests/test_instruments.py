"""The instruments `deathmatch KIND NAME`: what they have in common."""

import json
import re

import pytest
from conftest import ROOT, Tree

from deathmatch.analysis import provenance
from deathmatch.cli.main import main
from deathmatch.errors import UserError

KINDS = ("accepting", "profile")
OF_ALL = [
    (["a/b"], "'a/b' cannot be a file's name"),
    (["a", "--repetitions", "0"], "--repetitions: it must be 1 or more"),
]
MISTAKES = [(kind, *mistake) for kind in KINDS for mistake in OF_ALL] + [
    ("accepting", ["a", "--duration", "0"], "--duration: it must be 1 or more"),
    ("accepting", ["a", "--threads", "65"], "--threads: it must be from 1 to 64"),
    ("accepting", ["a", "--backlog", "0"], "--backlog: it must be from 1 to 4096"),
    ("profile", ["a", "--idle", "901"], "--idle: the experiment has no 901 idle connections"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "words", "said"), MISTAKES)
def test_a_mistake_is_told_before_anything_is_measured(kind, words, said):
    with pytest.raises(UserError, match=re.escape(said)):
        main([kind, *words])
    assert not (ROOT / "data" / kind / "a.json").exists()


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"about": {}, "readings": '])
def test_a_broken_record_is_named(text, monkeypatch, tmp_path):
    for module in ("analysis.provenance", "data.table_files"):
        monkeypatch.setattr(f"deathmatch.{module}.ROOT", tmp_path)
    file = tmp_path / "data" / "profile" / "mine.json"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    with pytest.raises(UserError, match="deathmatch profile mine"):
        provenance.load("profile", "mine")


# Takes three readings, of which the last fails.
FAILS = """
from argparse import Namespace
from dataclasses import dataclass

from deathmatch.instruments.instrument import Instrument

@dataclass(frozen=True)
class Reading:
    number: int

def take(reading, options, out):
    return {"left": 1 // (3 - reading.number)}

Instrument("kind", "backlog", "null", 0, None, take)._measure(
    [Reading(number) for number in (1, 2, 3)], Namespace(name="mine"), {}
)
"""


def test_readings_before_a_failure_are_kept(tree: Tree):
    done = tree.run("python", "-c", FAILS)
    assert "Reading(number=3): the measurement failed (exit status 1)" in done.text
    found = json.loads((tree.path / "data/kind/mine.json").read_text())
    assert [row["number"] for row in found["readings"]] == [1, 2]
