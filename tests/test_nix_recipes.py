"""The build phases of the flake's recipes, run as Nix would run them: in a cleared environment.

A real Nix evaluates each recipe against the stand-in for nixpkgs; its phase then runs in bash on
the source that Nix copied, with the variables that the recipe itself sets, and no others.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import polars as pl
import pytest
from conftest import ROOT, copy_tree, project_files
from nix_flake import DARWIN, Nix, closure, start, uses

from deathmatch.analysis.reply_rates import REPLY

pytestmark = pytest.mark.nix
SYSTEM = "x86_64-linux"
# One chapter runs all code that executes, draws and typesets; other datasets decide some of its
# claims.
EXPERIMENT = "static"
# From nixpkgs' setup.sh; the study's recipes define no hook.
SETUP = "runHook() { :; }\n"


@pytest.fixture(scope="module")
def nix(tmp_path_factory) -> Nix:
    return start(tmp_path_factory.mktemp("nix"))


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    """A copy of the project with one experiment of each committed dataset."""
    copy = copy_tree(tmp_path_factory.mktemp("tree"))
    for name in project_files():
        if name.parts[0] == "data" and (len(name.parts) <= 3 or name.parts[2] == EXPERIMENT):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    return copy


def recipe(nix: Nix, tree: Path, output: str, name: str) -> dict:
    """Return the arguments that a package or check of the flake gives to mkDerivation."""
    return uses(Path(nix.outputs(tree)[output][SYSTEM][name]["drvPath"]))


def cleared(
    nix: Nix, folder: Path, variables: dict[str, str], script: str
) -> subprocess.CompletedProcess[str]:
    """Run a script of bash in a folder, with these variables and what every build has."""
    # A short path, as Nix has: that of a Unix socket has at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="nix-build-") as top:
        basic = {
            "HOME": "/homeless-shelter", "NIX_BUILD_TOP": top, "PATH": os.environ["PATH"],
            "TMPDIR": top,
        }  # fmt: skip
        return subprocess.run(
            [*nix.sandbox, "bash", "-euc", SETUP + script],
            cwd=folder, env=basic | variables, capture_output=True, text=True,
        )  # fmt: skip


def built(nix: Nix, made: dict, to: Path) -> Path:
    """Run a recipe's phases up to the build on its source; return the folder with both."""
    folder = shutil.copytree(made["src"], to / "source")
    # Files in the store cannot be written; unpackPhase does the same.
    subprocess.run(["chmod", "-R", "u+w", folder], check=True)
    script = made.get("postPatch", "") + "\n" + made["buildPhase"]
    done = cleared(nix, folder, made.get("env", {}), script)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def hashes(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file in a folder, by its path from there."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_the_paper_is_that_of_the_whole_checkout(nix, tree, tmp_path):
    """The recipe's source lacks nothing that the paper is made from: its files are the same."""
    made = recipe(nix, tree, "packages", "paper")
    found = []
    # In the same place, as the output of a library may contain the path.
    place = tmp_path / "place"
    for source in (made["src"], tree):
        folder, out = built(nix, made | {"src": source}, place), tmp_path / str(source)[-6:]
        done = cleared(nix, folder, {}, f"out={out}\n{made['installPhase']}")
        assert done.returncode == 0, done.stderr
        found.append(hashes(out))
        shutil.rmtree(place)
    recipes, whole = found
    assert recipes == whole
    # A part of the data has a report.
    assert {"report.html", "report.pdf", "explore.html"} <= recipes.keys()
    assert ".gitignore" not in recipes


def test_a_load_generator_is_built_by_its_script(nix, tree, tmp_path):
    folder = built(nix, recipe(nix, tree, "packages", "roundtrip"), tmp_path)
    assert os.access(folder / "built" / "bin" / "roundtrip", os.X_OK)


def test_the_other_paper_is_made_of_another_table(nix, tree, tmp_path):
    """The change of nix/paper-of-data.nix halves the reply rates of a table, and nothing else."""
    check = nix.outputs(tree)["checks"][SYSTEM]["paper-of-data"]["drvPath"]
    made = [path for path in closure(check) if path.name.endswith("-deathmatch-paper.drv")]
    paper, other = sorted(map(uses, made), key=lambda used: used["postPatch"] != "")
    assert paper["postPatch"] == ""
    table = Path("data", "reference", "backlog", "points.parquet")
    changed = tmp_path / "source" / table
    changed.parent.mkdir(parents=True)
    shutil.copyfile(ROOT / table, changed)
    done = cleared(nix, tmp_path / "source", other["env"], other["postPatch"])
    assert done.returncode == 0, done.stderr
    before, after = pl.read_parquet(ROOT / table), pl.read_parquet(changed)
    assert after.drop(REPLY).equals(before.drop(REPLY))
    assert after[REPLY].equals(before[REPLY] / 2) and before[REPLY].sum() > 0


@pytest.mark.parametrize("same, status", [("deathmatch.pdf", 1), (None, 0)])
def test_the_check_of_the_paper_refuses_one_that_ignores_its_data(
    same, status, nix, tree, tmp_path
):
    phase = recipe(nix, tree, "checks", "paper-of-data")["buildPhase"]
    for number, output in enumerate(dict.fromkeys(re.findall(r'"(/[^"]*)/\$file"', phase))):
        folder = tmp_path / str(number)
        folder.mkdir()
        for name in ("deathmatch.html", "deathmatch.pdf"):
            (folder / name).write_text(name if name == same else f"{name} {number}")
        phase = phase.replace(output, str(folder))
    done = cleared(nix, tmp_path, {}, phase)
    assert done.returncode == status, done.stdout + done.stderr
    assert not same or f"{same} is the same with other data" in done.stderr


def test_a_shells_variables_are_enough_to_plan_the_paper(nix, tree, tmp_path):
    variables = nix.outputs(tree)["devShells"][DARWIN]["default"]["variables"]
    folder = shutil.copytree(tree, tmp_path / "tree")
    script = "snakemake paper --forceall --dry-run --config dataset=reference"
    done = cleared(nix, folder, variables | {"HOME": str(tmp_path)}, script)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "write_report" in done.stdout + done.stderr


def test_only_files_of_the_paper_make_nix_build_it_again(nix, tree, tmp_path):
    """An unpacked archive has no git to keep files of its own out of the flake."""
    changed = shutil.copytree(tree, tmp_path / "tree")
    with (changed / "README.md").open("a") as readme:
        readme.write("Another sentence.\n")
    for name in ("build/venv/pyvenv.cfg", "data/mine/backlog/trials.parquet", "paper/mine/x.html"):
        (changed / name).parent.mkdir(parents=True)
        (changed / name).write_text("of this clone")
    assert nix.outputs(changed) == nix.outputs(tree)
    del nix.known[changed]
    with (changed / "notebooks" / "00-method.md").open("a") as notebook:
        notebook.write("Another sentence.\n")
    before, after = (nix.outputs(each)["packages"][SYSTEM] for each in (tree, changed))
    differing = {name for name in before if before[name] != after[name]}
    assert differing == {"default", "paper"}
