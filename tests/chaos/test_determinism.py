"""From the same data, the same bytes: in any locale, time zone, folder and number of threads."""

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, Tree, copy_tree

pytestmark = pytest.mark.chaos

EXPERIMENTS = ["backlog", "overhead", "readiness", "storage"]
SURROUNDINGS = [
    {
        "LC_ALL": "C", "TZ": "UTC", "POLARS_MAX_THREADS": "1", "PYTHONHASHSEED": "1",
        "OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1",
    },
    {
        "LC_ALL": "tr_TR.UTF-8", "TZ": "Asia/Kathmandu", "POLARS_MAX_THREADS": "4",
        "PYTHONHASHSEED": "2", "OMP_NUM_THREADS": "4", "RAYON_NUM_THREADS": "4",
    },
]  # fmt: skip


def sums(folder: Path, *patterns: str) -> dict[str, str]:
    """Return {file: checksum} of the files that match, relative to the folder."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for pattern in patterns
        for path in sorted(folder.glob(pattern))
    }


def trees(tmp_path: Path, network: list[str]):
    """Give a fresh copy of the project for each of the surroundings."""
    words = ["localedef", "-i", "tr_TR", "-f", "UTF-8", tmp_path / "tr_TR.UTF-8"]
    subprocess.run(words, capture_output=True)
    for number, found in enumerate(SURROUNDINGS):
        environment = found | {"LOCPATH": str(tmp_path)}
        yield Tree(copy_tree(tmp_path / f"tree-{number}"), network, environment)


def test_papers_of_the_same_tables_are_the_same_bytes(tmp_path: Path, network):
    made = []
    for tree in trees(tmp_path, network):
        tree.dataset("kept", ["null"], [100])
        tree.replace("config/datasets/kept.toml", "seed = 1\n", "seed = 1\nfrozen = true\n")
        for name in EXPERIMENTS:
            to = tree.path / "data" / "kept" / name
            shutil.copytree(ROOT / "data" / "reference" / name, to,
                            ignore=shutil.ignore_patterns("raw.tar.xz"))  # fmt: skip
        tree.snakemake("paper", dataset="kept").succeeded()
        made.append(sums(tree.path, "figures/kept/*", "paper/kept/*.*"))
    wanted = {"paper/kept/deathmatch.html", "paper/kept/deathmatch.pdf", "paper/kept/explore.html"}
    assert wanted < set(made[0])
    assert len(made[0]) > 20
    differing = {
        name for name in made[0].keys() | made[1] if made[0].get(name) != made[1].get(name)
    }
    assert differing == set()


def test_tables_of_the_same_logs_are_the_same_bytes(tmp_path: Path, network):
    made, logs = [], None
    for tree in trees(tmp_path, network):
        tree.dataset("tiny", ["null"], [100, 200], trials=2)
        if logs is not None:
            shutil.copytree(logs, tree.path / "data" / "tiny")
        tree.snakemake("data/tiny/backlog/points.parquet", dataset="tiny").succeeded()
        logs = tree.path / "data" / "tiny"
        made.append(sums(tree.path, "data/tiny/backlog/*.parquet", "data/tiny/**/trial.json"))
        (logs / ".gitignore").unlink(missing_ok=True)
        for table in logs.glob("backlog/*.parquet"):
            table.unlink()
    assert len(made[0]) == 7 and made[0] == made[1]
