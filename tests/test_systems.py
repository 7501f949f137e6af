"""What is said of each system: its version, and whether its answers were right."""

import shutil

import polars as pl
import pytest
from conftest import ROOT, Tree, copy_tree

from deathmatch.analysis import systems
from deathmatch.plan import files

MEASURED = ROOT / "tests" / "data" / "yucan"


@pytest.fixture(scope="module")
def tree(tmp_path_factory, network) -> Tree:
    """A tree whose dataset `tiny` is the kept trial of Yucan: its client shared a CPU with it."""
    tree = Tree(copy_tree(tmp_path_factory.mktemp("systems") / "tree"), network)
    levels = 'backlog = [1]\nschedulers = ["all"]\nsomaxconn = [128]'
    tree.dataset("tiny", ["yucan"], [500, 2000], levels=levels)
    shutil.copytree(MEASURED, tree.path / "data/tiny/backlog/yucan")
    tree.deathmatch("tidy", "data/tiny/backlog").succeeded()
    return tree


ROWS = """
from deathmatch.analysis import systems
for row in systems.systems("tiny").rows():
    print(*row, sep=" | ")
"""


def test_a_row_for_every_folder(tree: Tree):
    lines = tree.run("python", "-c", ROWS).succeeded().text.splitlines()
    rows = {name: row for name, *row in (line.split(" | ") for line in lines)}
    assert list(rows) == files.names("server")
    assert rows["yucan"] == ["Yucan on OTP 25, erts 13.1.5, jit", "passed in 1 of 1 trials"]
    assert rows["tornado"] == ["None", "None"]
    assert systems.variants(files.server("yucan")) == "one or all CPUs"


def test_conformance_in_words():
    found = pl.DataFrame(
        {"outcome": ["measured", "measured, with failures", "answers wrongly"],
         "reason": ["", "", "ask: status 500\nlog"],
         "deviations": [["HTTP/1.0"], [], ["ask"]]}
    )  # fmt: skip
    assert systems.conformance(found[:2]) == "passed in 2 of 2 trials, but for: HTTP/1.0"
    assert systems.conformance(found[1:2]) == "passed in 1 of 1 trials"
    assert systems.conformance(found) == "answers wrongly in 1 of 3 trials: ask: status 500"
    assert systems.conformance(found[:0]) is None
