"""The workflows of CI, which no test runs: actionlint passes, and the names in them exist.

actionlint is compiled from tests/workflows/, whose go.sum has its hashes.
"""

import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import changed
import pytest
import yaml
from conftest import ROOT, project_files
from nix_flake import copy_flake, start

# A compiler of Go and an evaluation of the flake, for files that seldom change.
pytestmark = pytest.mark.workflows

FOLDER = Path(".github", "workflows")
NAMES = sorted(path.name for path in (ROOT / FOLDER).iterdir())


def workflow(name: str) -> dict:
    """Return a workflow; YAML 1.1 reads the key `on` as true."""
    read = yaml.safe_load((ROOT / FOLDER / name).read_text())
    return read | {"on": read[True]}


@pytest.fixture(scope="module")
def actionlint() -> Path:
    """The program, compiled into build/."""
    if not shutil.which("go"):
        pytest.fail("go is not installed: run the tests inside ./shell")
    out = ROOT / "build" / "actionlint"
    words = ["go", "build", "-o", out / "bin" / "actionlint"]
    variables = {
        "GOCACHE": str(out / "cache"), "GOFLAGS": "-modcacherw", "GOPATH": str(out),
        "GOTOOLCHAIN": "local",
    }  # fmt: skip
    done = subprocess.run(
        [*words, "github.com/rhysd/actionlint/cmd/actionlint"], cwd=ROOT / "tests" / "workflows",
        env=os.environ | variables, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return out / "bin" / "actionlint"


def linted(actionlint: Path, path: Path) -> str:
    """Return what actionlint finds in a workflow, by itself: no other checker is asked."""
    words = [actionlint, "-no-color", "-shellcheck=", "-pyflakes=", path]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_actionlint_finds_nothing(name, actionlint):
    assert linted(actionlint, ROOT / FOLDER / name) == ""


def steps(read: dict) -> Iterator[tuple[str, dict]]:
    """Yield the command of each step with each row of its job's matrix."""
    for job in read["jobs"].values():
        for row in job.get("strategy", {}).get("matrix", {}).get("include", [{}]):
            for step in job["steps"]:
                if "run" in step:
                    yield step["run"], row


def filled(command: str, row: dict[str, str]) -> str:
    """Return a command with the values of its matrix."""
    return re.sub(r"\$\{\{ matrix\.(\w+) \}\}", lambda name: row[name[1]], command)


def missing(read: dict, files: set[str], attributes: set[str]) -> set[str]:
    """Return the words of a workflow's commands that name something that does not exist.

    They name a file or folder, a dataset, or an attribute of the flake, of which `attributes` are
    those that `nix build` and `nix develop` take.
    """
    words = {word for text, row in steps(read) for word in filled(text, row).split()}
    folders = {str(parent) for name in files for parent in Path(name).parents}
    return {word for word in words if not is_there(word, files | folders, attributes)}


def is_there(word: str, paths: set[str], attributes: set[str]) -> bool:
    """Return whether the thing that a word names exists; true of a word that names nothing."""
    if word.startswith(".#"):
        return word.removeprefix(".#") in attributes
    if word.startswith("dataset="):
        return f"config/datasets/{word.removeprefix('dataset=')}.toml" in paths
    path = word.removeprefix("./")
    ours = word.startswith("./") or ("/" in path and path.partition("/")[0] in paths)
    return path in paths or not (ours or re.fullmatch(r"\w+file", path))


@pytest.fixture(scope="module")
def offered(tmp_path_factory) -> set[str]:
    """The attributes of the flake that a command may name on either kind of machine."""
    nix = start(tmp_path_factory.mktemp("nix"))
    outputs = nix.outputs(copy_flake(tmp_path_factory.mktemp("flake")))
    whole = {
        f"{output}.{system}.{name}"
        for output in ("packages", "checks", "devShells")
        for system, offered in outputs[output].items()
        for name in offered
    }
    short = {*outputs["packages"]["aarch64-linux"]} & {*outputs["packages"]["x86_64-linux"]}
    return whole | short


@pytest.mark.parametrize("name", NAMES)
def test_names_in_a_workflow_exist(name, offered):
    files = {str(path) for path in project_files()}
    read = workflow(name)
    assert missing(read, files, offered) == set()
    for trigger in read["on"].values():
        for path in (trigger or {}).get("paths", []) if isinstance(trigger, dict) else []:
            assert list(ROOT.glob(path)), path


def test_every_kind_of_test_runs_each_week():
    """All kinds that `.ci/run all` runs, and the others by a command each."""
    ci = workflow("ci.yml")
    assert ci["on"]["schedule"]
    (debian,) = (step for step in ci["jobs"]["debian"]["steps"] if ".ci/run" in step.get("run", ""))
    # A scheduled run has no change to compare with.
    assert debian["env"]["BASE"].endswith("|| 'all' }}")
    weekly = ci["jobs"]["weekly"]
    assert weekly["if"] == "github.event_name == 'schedule'"
    commands = {filled(text, row) for text, row in steps({"jobs": {"weekly": weekly}})}
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    apart = {
        f"tests/{name}" for name in options["norecursedirs"] if (ROOT / "tests" / name).is_dir()
    }
    words = {f"-m {kind}" for kind in changed.left_out("all")} | apart
    assert {f"./shell pytest {each}" for each in words} <= commands


def test_a_scheduled_run_that_fails_opens_an_issue():
    failed = workflow("failed.yml")
    scheduled = {read["name"] for read in map(workflow, NAMES) if "schedule" in read["on"]}
    assert {*failed["on"]["workflow_run"]["workflows"]} == scheduled
    assert failed["permissions"] == {"issues": "write"}


@pytest.mark.parametrize(
    "opened, asked",
    [("", "create --title CI failed --body https://run"), ("7", "comment 7 --body https://run")],
)
def test_one_issue_is_open_at_a_time(opened, asked, tmp_path):
    """The step's own script; GitHub's part is played, as there is none here."""
    ((script, _),) = steps(workflow("failed.yml"))
    program = tmp_path / "gh"
    program.write_text(f'#!/bin/sh\n[ "$2" != list ] || exec echo {opened}\necho "$*" >>"$0.log"\n')
    program.chmod(0o755)
    asking = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "TITLE": "CI failed",
        "URL": "https://run",
    }
    subprocess.run(["bash", "-ec", script], env=os.environ | asking, check=True)
    assert (tmp_path / "gh.log").read_text() == f"issue {asked}\n"
