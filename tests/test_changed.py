"""tests/changed.py: in a real repository, a change selects the tests of its files."""

import subprocess
import sys
from pathlib import Path

import changed
from conftest import ROOT


def left_out(*needed: str) -> str:
    """Return the expression by which tests of these kinds run, and of no other kind."""
    kinds = sorted({*changed.NEVER, *changed.KINDS} - set(needed))
    return " and ".join(f"not {kind}" for kind in kinds)


def git(folder: Path, *words: str) -> str:
    user = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
    return subprocess.check_output(["git", *user, *words], cwd=folder, text=True).strip()


def commit(folder: Path, name: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("changed\n")
    git(folder, "add", name)
    git(folder, "commit", "--quiet", "--message", name)


def test_a_change_selects_the_tests_of_its_files(tmp_path):
    def chosen(*words: str) -> str:
        script = [sys.executable, ROOT / "tests" / "changed.py", *words]
        return subprocess.check_output(script, cwd=tmp_path, text=True).strip()

    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    commit(tmp_path, "README.md")
    git(tmp_path, "update-ref", "refs/remotes/origin/main", "HEAD")
    # On main it is the last commit, and the first one has none before it.
    for words in ([], ["all"], ["no-such-commit"]):
        assert chosen(*words) == left_out(*changed.KINDS)
    commit(tmp_path, "servers/releases/mine-1.0/server.toml")
    commit(tmp_path, "deathmatch/load/mine.py")
    assert chosen() == left_out("nix", "fuzz", "timing")
    assert chosen("HEAD~1") == left_out("fuzz", "timing")
    commit(tmp_path, "servers/releases/mine-1.0/serve.py")
    assert chosen("HEAD~1") == left_out()


def test_each_pattern_matches_a_file():
    for patterns in changed.KINDS.values():
        for pattern in patterns:
            assert git(ROOT, "ls-files", "--", pattern), pattern
