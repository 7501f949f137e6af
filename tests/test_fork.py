"""A fork of an earlier version, with a server and a dataset of its own, merges today's."""

import subprocess
from pathlib import Path

import polars as pl
import pytest
from conftest import ROOT, Tree

FORKED_AT = "3e26fca"
"""The last commit before modules, packages and commands got today's names."""

MINE = "data/mine/backlog/points.parquet"


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org"]
    done = subprocess.run(
        ["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.fixture(scope="module")
def merged(tmp_path_factory, network) -> tuple[Tree, pl.DataFrame]:
    """A fork that measured a dataset and then merged today's version; what it had measured."""
    folder = tmp_path_factory.mktemp("fork") / "fork"
    git(ROOT, "clone", "--quiet", "--shared", str(ROOT), str(folder))
    today = git(folder, "rev-parse", "HEAD").strip()
    git(folder, "checkout", "--quiet", "-b", "mine", FORKED_AT)
    fork = Tree(folder, network)
    fork.server("mine", "ok")
    fork.dataset("mine", ["mine"], [50])
    fork.snakemake(MINE, dataset="mine").succeeded()
    before = pl.read_parquet(folder / MINE)
    git(folder, "add", "servers/mine", "config/datasets/mine.toml")
    git(folder, "add", "--force", MINE)
    git(folder, "commit", "--quiet", "--message", "A server of mine")
    git(folder, "merge", "--quiet", "--no-edit", today)
    return fork, before


def test_a_fork_reads_what_it_measured_before(merged):
    fork, before = merged
    fork.deathmatch("tidy", "data/mine").succeeded()
    after = pl.read_parquet(fork.path / MINE)
    kept = [name for name in before.columns if name in after.columns]
    assert after["server"].to_list() == ["mine"]
    for name in ("offered_rate_rps", "replies", "requests"):
        assert name in kept and after[name].to_list() == before[name].to_list()
    out = "paper/mine/notebooks/01-backlog.ipynb"
    fork.deathmatch(
        "notebook", "notebooks/01-backlog.md", "--dataset", "mine", "--out", out
    ).succeeded()
    assert "mine" in (fork.path / out).read_text()


def test_a_forks_server_is_still_built_and_measured(merged):
    fork, _ = merged
    fork.dataset("again", ["mine"], [50])
    fork.snakemake("data/again/backlog/points.parquet", dataset="again").succeeded()
    points = pl.read_parquet(fork.path / "data/again/backlog/points.parquet")
    assert points["server"].to_list() == ["mine"] and points["replies"][0] > 0
