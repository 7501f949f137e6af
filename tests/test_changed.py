"""tests/changed.py: a change selects the tests that are about its files, in a real repository."""

import ast
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
        ("nix/servers/mine.nix", ["nix"]),
        ("flake.lock", ["nix"]),
        ("servers/mine/server.toml", ["nix"]),
        ("servers/releases/mine-1.0/server.toml", ["nix"]),
        ("tests/test_nix_facts.py", ["nix"]),
        ("deathmatch/agent/mine.py", ["fuzz", "ssh"]),
        ("deathmatch/load/mine.py", ["fuzz", "timing"]),
        ("clients/wsload/src/mine.rs", ["timing"]),
        (".github/workflows/ci.yml", ["workflows"]),
        ("servers/mine/serve.py", []),
        ("servers/releases/mine-1.0/serve.py", []),
        ("deathmatch/analysis/mine.py", []),
    ],
)
def test_files_select_their_kinds_since_a_branch_left_main(repository, name, kinds):
    commit(repository, name)
    commit(repository, "another.md")
    assert chosen(repository) == left_out(*kinds)
    # The last commit by itself.
    assert chosen(repository, "HEAD~1") == NONE


def test_on_main_it_is_the_last_commit(repository):
    commit(repository, "flake.nix")
    commit(repository, "another.md")
    git(repository, "update-ref", "refs/remotes/origin/main", "HEAD")
    assert chosen(repository) == NONE


@pytest.mark.parametrize("base", ["all", "0" * 40, "no-such-commit"])
def test_where_nothing_can_be_told_all_run(repository, base):
    assert chosen(repository, base) == ALL


def test_one_commit_has_nothing_before_it(repository):
    assert chosen(repository) == ALL


def test_each_pattern_is_of_a_file_that_is_there():
    for patterns in changed.KINDS.values():
        for pattern in patterns:
            assert git(ROOT, "ls-files", "--", pattern), pattern


def test_what_is_fuzzed_selects_its_tests():
    """Each module of the project that the fuzzed targets import."""
    tree = ast.parse((ROOT / "tests" / "fuzz" / "targets.py").read_text())
    names = [
        f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module.startswith("deathmatch")
        for alias in node.names
    ]
    listed = git(ROOT, "ls-files", "--", *changed.KINDS["fuzz"]).splitlines()
    for name in names:
        path = name.replace(".", "/")
        near = {f"{path}.py", f"{path}/__init__.py", f"{path.rpartition('/')[0]}.py"}
        assert near & set(listed), name
    assert names
