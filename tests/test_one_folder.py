"""The claim of servers/README.md: a folder is all that a new server takes."""

import json
import subprocess

import pytest
from conftest import Tree

from deathmatch.plan import files

SMALL = """
title = "every server, but those that take a build"
trials = 1
seed = 1

[experiments.backlog]
rates_rps = [200]
duration_s = 1

[[experiments.backlog.grids]]
omit = ["tornado-1", "yucan-otp23", "yucan-otp27"]
"""


@pytest.mark.alone
def test_a_new_folder_is_in_matrix_table_figure_and_paper(tree: Tree):
    tree.write("config/datasets/small.toml", SMALL)
    before = set(tree.path.rglob("*"))
    tree.deathmatch("new-server", "mine").succeeded()
    made = {path for path in tree.path.rglob("*") if path.is_file()} - before
    ours = {path for path in made if not {".snakemake", "__pycache__"} & set(path.parts)}
    assert {path.parent for path in ours} == {tree.path / "servers" / "mine"}

    assert ("mine", 1) in tree.trials("small")
    tree.run("git", "init", "--quiet").succeeded()
    tree.run("git", "add", "--all").succeeded()
    tree.measure_soundly("small", servers="mine")
    spec = json.loads((tree.path / "figures/small/fig-backlog-servers.json").read_text())
    assert "mine" in json.dumps(spec)
    page = (tree.path / "paper/small/deathmatch.html").read_text()
    assert ">mine</td>" in page
    pdf = tree.path / "paper/small/deathmatch.pdf"
    text = subprocess.run(["pdftotext", pdf, "-"], capture_output=True, text=True).stdout
    assert "mine" in text
    # What was measured and made is not offered to git, nor is a file of the study changed.
    status = tree.run("git", "status", "--porcelain", "--untracked-files=all").succeeded().text
    assert [line for line in status.splitlines() if not line.startswith("A  ")] == []


def test_the_template_is_no_server(shared_tree: Tree):
    assert "_template" not in files.names("server", shared_tree.path)
    text = shared_tree.snakemake("-n", dataset="full").succeeded().text
    assert "_template" not in text
    said = shared_tree.snakemake("-n", dataset="smoke", servers="_template").failed().text
    assert "there is no server '_template'" in said
