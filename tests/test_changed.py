"""tests/changed.py: a change selects the tests that are about its files, in a real repository."""

import subprocess
import sys
from pathlib import Path

import changed
import pytest
from conftest import ROOT

EXPRESSION = "not chaos and not container and not slurm"
WITHOUT_NIX = "not chaos and not container and not nix and not slurm"


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
    "name, expression",
    [
        ("nix/servers/mine.nix", EXPRESSION),
        ("flake.lock", EXPRESSION),
        ("servers/mine/server.toml", EXPRESSION),
        ("tests/test_nix_facts.py", EXPRESSION),
        ("servers/mine/serve.py", WITHOUT_NIX),
        ("deathmatch/analysis/mine.py", WITHOUT_NIX),
    ],
)
def test_files_select_their_kind_since_a_branch_left_main(repository, name, expression):
    commit(repository, name)
    commit(repository, "another.md")
    assert chosen(repository) == expression
    # The last commit by itself.
    assert chosen(repository, "HEAD~1") == WITHOUT_NIX


def test_on_main_it_is_the_last_commit(repository):
    commit(repository, "flake.nix")
    commit(repository, "another.md")
    git(repository, "update-ref", "refs/remotes/origin/main", "HEAD")
    assert chosen(repository) == WITHOUT_NIX


@pytest.mark.parametrize("base", ["all", "0" * 40, "no-such-commit"])
def test_where_nothing_can_be_told_all_run(repository, base):
    assert chosen(repository, base) == EXPRESSION


def test_one_commit_has_nothing_before_it(repository):
    assert chosen(repository) == EXPRESSION


def test_each_pattern_is_of_a_file_that_is_there():
    for patterns in changed.KINDS.values():
        for pattern in patterns:
            assert git(ROOT, "ls-files", "--", pattern), pattern
