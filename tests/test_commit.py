"""The commit of a trial is that of the project's own repository, or unknown with a reason."""

import os
import subprocess
from pathlib import Path

import pytest
from conftest import AS_ROOT

from deathmatch.measure.machine import commit_of

IDENTITY = ("-c", "user.name=Nobody", "-c", "user.email=nobody@example.org")
SOMEBODY = 65534


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    return repository(tmp_path / "clone", "ours")


def repository(folder: Path, content: str) -> Path:
    folder.mkdir()
    (folder / "file").write_text(content)
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, *IDENTITY, "commit", "--quiet", "--message", content)
    return folder


def git(folder: Path, *words: str) -> str:
    return subprocess.check_output(["git", *words], cwd=folder, text=True).strip()


def test_the_commit_and_its_changes_whatever_its_tags(clone):
    head = git(clone, "rev-parse", "--short=12", "HEAD")
    assert commit_of(clone).record() == {"commit": head}
    for tag in ("a-dirty", "0123456789ab"):
        git(clone, *IDENTITY, "tag", "--annotate", "--message", "a tag", tag)
        assert commit_of(clone).record() == {"commit": head}
    (clone / "file").write_text("changed")
    assert commit_of(clone).record() == {"commit": f"{head}-dirty"}


def test_another_repository_in_the_environment_is_not_ours(clone, tmp_path, monkeypatch):
    other = repository(tmp_path / "other", "theirs")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    found = commit_of(clone)
    monkeypatch.undo()
    assert found.name == git(clone, "rev-parse", "--short=12", "HEAD")


def test_the_repository_around_us_is_not_ours(clone):
    inner = clone / "unpacked"
    inner.mkdir()
    found = commit_of(inner)
    assert found.name is None and "not a git repository" in found.unknown
    assert found.record()["commit_unknown"] == found.unknown


def test_files_of_another_folder_are_not_ours(clone, tmp_path):
    git(clone, "config", "core.worktree", str(tmp_path))
    assert commit_of(clone).record() == {
        "commit": None, "commit_unknown": "the repository's files are in another folder"
    }  # fmt: skip


@pytest.mark.skipif(not AS_ROOT, reason="only root gives files away")
def test_a_folder_of_another_owner_has_its_commit(clone, monkeypatch):
    """As in the container of README.md, whose user is not the clone's owner."""
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    head = git(clone, "rev-parse", "--short=12", "HEAD")
    for path in (clone, *clone.rglob("*")):
        os.chown(path, SOMEBODY, SOMEBODY, follow_symlinks=False)
    with pytest.raises(subprocess.CalledProcessError):
        git(clone, "status")
    assert commit_of(clone).name == head


def test_without_git_the_reason_is_recorded(clone, monkeypatch):
    monkeypatch.setenv("PATH", str(clone))
    assert commit_of(clone).record() == {"commit": None, "commit_unknown": "git is not installed"}
