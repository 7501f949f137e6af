"""tests/changed.py: a change selects the tests that are about its files, in a real repository."""

import subprocess
import sys
from pathlib import Path

import changed
import pytest
from conftest import ROOT


def left_out(*needed: str) -> str:
    """Return the expression by which tests of these kinds run, and of no other kind."""
    kinds = sorted({*changed.NEVER, *changed.KINDS} - set(needed))
    return " and ".join(f"not {kind}" for kind in kinds)


ALL, NONE = left_out(*changed.KINDS), left_out()


@pytest.fixture
def repository(tmp_path) -> Path:
    """A repository with one commit, which is also origin's main."""
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    commit(tmp_path, "README.md")
    git(tmp_path, "update-ref", "refs/remotes/origin/main", "HEAD")
    return tmp_path


def git(folder: Path, *words: str) -> str:
    user = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
    return subprocess.check_output(["git", *user, *words], cwd=folder, text=True).strip()


def commit(folder: Path, name: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("changed\n")
    git(folder, "add", name)
    git(folder, "commit", "--quiet", "--message", name)


def chosen(folder: Path, *words: str) -> str:
    script = ROOT / "tests" / "changed.py"
    return subprocess.check_output([sys.executable, script, *words], cwd=folder, text=True).strip()


@pytest.mark.parametrize(
    "name, kinds",
    [
        ("servers/releases/mine-1.0/server.toml", ["nix"]),
        ("deathmatch/load/mine.py", ["fuzz", "timing"]),
        ("servers/releases/mine-1.0/serve.py", []),
    ],
)
def test_files_select_their_kinds_since_a_branch_left_main(repository, name, kinds):
    commit(repository, name)
    commit(repository, "another.md")
    assert chosen(repository) == left_out(*kinds)
    # The last commit by itself.
    assert chosen(repository, "HEAD~1") == NONE


def test_where_nothing_can_be_told_all_run(repository):
    for base in ("all", "0" * 40, "no-such-commit"):
        assert chosen(repository, base) == ALL
    # On main it is the last commit, and the first one has nothing before it.
    assert chosen(repository) == ALL


def test_each_pattern_is_of_a_file_that_is_there():
    for patterns in changed.KINDS.values():
        for pattern in patterns:
            assert git(ROOT, "ls-files", "--", pattern), pattern
