"""The study under the Python of nixpkgs, 3.13, with the libraries of toolchains/python/.

Under Nix the suite itself runs so. On Debian 12, whose Python is 3.11, tests/nix/python sets one up
in build/, and these tests run with it what needs no server: the plan, the paper of the committed
dataset, and the tests of parsing, statistics, tables and prose.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import polars as pl
import pytest
from conftest import ROOT, Tree, copy_tree, project_files
from nix_flake import made, of_the_paper
from polars.testing import assert_frame_equal

pytestmark = [
    pytest.mark.nix,
    pytest.mark.skipif(
        os.environ.get("DEATHMATCH_TOOLCHAIN") != "debian",
        reason="inside Nix, the other tests run with its Python already",
    ),
]
BUILD = ROOT / "build"
LISTS = [ROOT / "toolchains" / "python" / f"{group}.txt" for group in ("run", "test")]
FACTS = json.loads((ROOT / "tests" / "nix" / "facts.json").read_text())
RELEASE = FACTS["packages"]["python3"]["version"].rpartition(".")[0]
# A chapter of each kind is enough to run all that draws, decides and typesets.
EXPERIMENTS = ["dynamic", "storage"]
DECIDED = [
    "claim",
    "experiment",
    *(
        f"{when}{what}"
        for when in ("then", "now")
        for what in ("", "_effect", "_low", "_high", "_trials")
    ),
]
PURE = [
    "analysis", "archive", "config", "histogram", "load", "matrix", "prose",
    "published", "stats", "systems", "tidy", "views",
]  # fmt: skip


@pytest.fixture(scope="module")
def programs() -> Path:
    """The folder with nixpkgs' Python and the programs of its libraries, made if need be."""
    return made(BUILD / "python-of-nix", ROOT / "tests" / "nix" / "python", *LISTS) / "bin"


@pytest.fixture(scope="module")
def environment(programs) -> dict[str, str]:
    """PATH with that Python and its programs first; no toolchain, as nothing is measured."""
    path = os.environ["PATH"].replace(str(BUILD / "venv" / "bin"), str(programs))
    assert shutil.which("snakemake", path=path) == str(programs / "snakemake")
    return {
        "PATH": path,
        "VIRTUAL_ENV": str(programs.parent),
        "DEATHMATCH_TOOLCHAIN": "unknown",
        # Without bytecode each process would compile the libraries again.
        "PYTHONDONTWRITEBYTECODE": "",
    }


@pytest.fixture(scope="module")
def committed(tmp_path_factory, network, environment) -> Tree:
    """A copy of the project with part of the committed datasets, and nothing made of them."""
    path = copy_tree(tmp_path_factory.mktemp("committed") / "tree")
    for name in project_files():
        if name.parts[0] != "data" or name.parts[1] not in of_the_paper():
            continue
        # The tables of the experiments, and the files of the dataset itself.
        if len(name.parts) == 3 or name.parts[2] in EXPERIMENTS:
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, path / name)
    return Tree(path, network, environment)


def test_report_of_the_committed_dataset(committed):
    """A part of it has a report; its verdicts are the paper's, which Debian's Python made."""
    committed.snakemake("paper", "paper/reference/notebooks/20-claims.ipynb").succeeded()
    paper = committed.path / "paper" / "reference"
    assert all((paper / f"report.{kind}").stat().st_size > 1e4 for kind in ("html", "pdf"))
    verdicts = Path("figures", "reference", "claims.parquet")
    ours, theirs = (
        pl.read_parquet(root / verdicts, columns=DECIDED).filter(
            pl.col("experiment").is_in(EXPERIMENTS)
        )
        for root in (committed.path, ROOT)
    )
    assert ours.height > 10
    assert_frame_equal(ours, theirs)


def test_what_needs_no_server(environment):
    files = [f"tests/test_{name}.py" for name in PURE]
    # It waits for no turn: the test that runs it has one.
    outer = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        ["python", "-m", "pytest", "-p", "no:cacheprovider", *files],
        cwd=ROOT, env=outer | environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Python {RELEASE}." in done.stdout
