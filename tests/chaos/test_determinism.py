"""From the same data, the same bytes: in any locale, time zone, folder and number of threads."""

import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, Tree, copy_tree

pytestmark = pytest.mark.chaos

EXPERIMENTS = ["backlog", "overhead", "readiness", "storage"]
THREADS = ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "RAYON_NUM_THREADS", "PYTHONHASHSEED")
SURROUNDINGS = [
    {"LC_ALL": "C", "TZ": "UTC"} | dict.fromkeys(THREADS, "1"),
    {"LC_ALL": "tr_TR.UTF-8", "TZ": "Asia/Kathmandu"} | dict.fromkeys(THREADS, "4"),
]


def test_papers_of_the_same_tables_are_the_same_bytes(tmp_path: Path, network):
    words = ["localedef", "-i", "tr_TR", "-f", "UTF-8", tmp_path / "tr_TR.UTF-8"]
    subprocess.run(words, capture_output=True)
    made = []
    for number, found in enumerate(SURROUNDINGS):
        environment = found | {"LOCPATH": str(tmp_path)}
        tree = Tree(copy_tree(tmp_path / f"tree-{number}"), network, environment)
        tree.dataset("kept", ["null"], [100])
        tree.replace("config/datasets/kept.toml", "seed = 1\n", "seed = 1\nfrozen = true\n")
        for name in EXPERIMENTS:
            to = tree.path / "data" / "kept" / name
            shutil.copytree(ROOT / "data" / "reference" / name, to,
                            ignore=shutil.ignore_patterns("raw.tar.xz"))  # fmt: skip
        tree.snakemake("paper", dataset="kept").succeeded()
        paths = [*tree.path.glob("figures/kept/*"), *tree.path.glob("paper/kept/*.*")]
        made.append({str(path.relative_to(tree.path)): path.read_bytes() for path in paths})
    wanted = {"paper/kept/deathmatch.html", "paper/kept/deathmatch.pdf", "paper/kept/explore.html"}
    assert wanted < set(made[0])
    assert len(made[0]) > 20
    differing = {
        name for name in made[0].keys() | made[1] if made[0].get(name) != made[1].get(name)
    }
    assert differing == set()
