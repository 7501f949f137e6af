"""The instruments `deathmatch KIND NAME`: what they have in common."""

import re

import pytest
from conftest import ROOT

from deathmatch.cli.main import main
from deathmatch.errors import UserError

KINDS = ("accepting", "connections", "descriptors", "packets", "profile")
OF_ALL = [
    (["a/b"], "'a/b' cannot be a file's name"),
    (["a", "--repetitions", "0"], "--repetitions: it must be 1 or more"),
]
MISTAKES = [(kind, *mistake) for kind in KINDS for mistake in OF_ALL] + [
    ("accepting", ["a", "--duration", "0"], "--duration: it must be 1 or more"),
    ("accepting", ["a", "--threads", "65"], "--threads: it must be from 1 to 64"),
    ("accepting", ["a", "--backlog", "0"], "--backlog: it must be from 1 to 4096"),
    ("connections", ["a", "--connections", "0"], "--connections: it must be 1 or more"),
    ("connections", ["a", "--held", "-1"], "--held: it must be 0 or more"),
    ("connections", ["a", "--memory-share", "2"],
     "--memory-share: it must be more than 0 and at most 1"),
    ("descriptors", ["a", "--most", "3"], "--most: it must be 16 or more"),
    ("profile", ["a", "--idle", "901"], "--idle: the experiment has no 901 idle connections"),
    ("packets", ["a", "--rate", "0"], "--rate: it must be 1 or more"),
    ("packets", ["a", "--server", "otp-store"], "is in no experiment that can send"),
    ("packets", ["a", "--server", "ngnix"], "'ngnix'"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "words", "said"), MISTAKES)
def test_a_mistake_is_told_before_anything_is_measured(kind, words, said):
    with pytest.raises(UserError, match=re.escape(said)):
        main([kind, *words])
    assert not (ROOT / "data" / kind / "a.json").exists()
