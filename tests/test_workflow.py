"""The rules pass Snakemake's lint where nothing is built, and depend on the code that they use."""

import os
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest
from conftest import ROOT, copy_tree
from imports import ours
from snakemake.scheduling import job_scheduler
from snakemake.settings.enums import Quietness

from deathmatch.run import code_inputs, snakemake_internals

# The lint has no way to switch a rule off.
SWITCHED_OFF = {
    "Specify a conda environment or container for each rule.": "./shell, Nix or the Containerfile "
    "installs the same locked tools for every rule, and a trial is measured outside of containers"
}
COPY = "deathmatch/builds/copy.py"
NOTEBOOKS = sorted(path.stem for path in (ROOT / "notebooks").glob("*.md"))


def test_snakemake_lint_passes_on_a_fresh_copy(tmp_path):
    clone = copy_tree(tmp_path / "clone")
    # No load generator of this checkout is on the path.
    folders = os.environ["PATH"].split(os.pathsep)
    kept = [folder for folder in folders if "build" not in folder or "venv" in folder]
    own = {"PATH": os.pathsep.join(kept), "PYTHONPATH": str(clone / "workflow" / "plugins")}
    done = subprocess.run(
        ["snakemake", "--lint"], cwd=clone, env=os.environ | own, text=True, capture_output=True
    )
    titles = set(re.findall(r"^ +\* (.+?):?$", done.stderr, re.MULTILINE))
    assert titles == set(SWITCHED_OFF), done.stderr


def test_every_import_is_seen():
    for path in (ROOT / "deathmatch").rglob("*.py"):
        source = path.read_text()
        assert ours(source) <= code_inputs._imported(source), path


def test_a_table_is_due_for_the_modules_that_make_it():
    used = code_inputs.of_module("data.tidy", ROOT)
    assert {"deathmatch/data/tidy.py", "deathmatch/load/httperf.py"} <= {*used}
    assert (ROOT / COPY).is_file() and COPY not in used
    folders = (f"deathmatch/{name}" for name in ("hosts/audit.py", "builds/", "paper/", "run/"))
    assert not [file for file in used if file.startswith(tuple(folders))]
    assert len(used) < 100


def test_a_chart_makes_its_own_notebook_due():
    by_notebook = {
        name: set(code_inputs.of_notebook(f"notebooks/{name}.md", ROOT)) for name in NOTEBOOKS
    }
    with_chart = [name for name in NOTEBOOKS if "deathmatch/paper/charts/readiness.py"
                  in by_notebook[name]]  # fmt: skip
    assert with_chart == ["08-readiness"]
    for name, used in by_notebook.items():
        assert COPY not in used and not [file for file in used if "/run/" in file], name


@pytest.mark.parametrize("kind, ends", [(Quietness.RULES, True), (Quietness.REASON, False)])
def test_a_dry_run_goes_through_its_jobs_only_where_they_are_shown(monkeypatch, kind, ends):
    usual = job_scheduler.JobScheduler.schedule
    monkeypatch.setattr(job_scheduler.JobScheduler, "schedule", usual)
    settings = SimpleNamespace(quiet={Quietness.HOST, kind})
    snakemake_internals.go_through_no_hidden_job(SimpleNamespace(output_settings=settings))
    assert (job_scheduler.JobScheduler.schedule is not usual) == ends


def test_reading_the_snakefile_loads_no_module_that_only_measuring_needs():
    """Those modules take as long to load as the rest of the project."""
    script = "import deathmatch.run.invocation, sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert not {"polars", "numpy", "h11", "rich", "papermill"} & {*done.stdout.split()}
