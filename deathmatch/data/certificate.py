"""Certify a dataset: `snakemake certify --config dataset=NAME`, or `./shell deathmatch certify`.

In: a dataset that passes the strict check. Out: in its folder, `checksums.sha256`, `CITATION.cff`,
`codecheck.yml` and `ro-crate-metadata.json`; nothing if it does not pass.
"""

import argparse
import json
import shutil
import sys
from pathlib import Path

import polars as pl
import yaml

from deathmatch.checks.findings import PASSED
from deathmatch.data import check, checksums, crate
from deathmatch.data.check import Report
from deathmatch.plan import files, paths
from deathmatch.plan.dataset import EVERY_TABLE, TABLES
from deathmatch.plan.record import MEASURED
from deathmatch.plan.selection import Choice

CODECHECK = "codecheck.yml"
CODECHECK_VERSION = "https://codecheck.org.uk/spec/config/1.0/"
# What an independent checker fills in (CODECHECK, specification of the configuration file, 1.0).
CHECKERS = """\
# Left for the checker. A file that names one is kept when the dataset is certified again.
codechecker:
  - name:
    ORCID:
summary:
repository:
check_time:
certificate:
report:
"""


def main(given: argparse.Namespace) -> int:
    """Certify the dataset named on the command line; return the status of its strict check."""
    report = check.checked(given.dataset, Choice(), strict=True)
    if report.status != PASSED:
        width = shutil.get_terminal_size((100, 24)).columns
        print(report.text(width), file=sys.stderr)
        print(f"data/{given.dataset}: no certificate is written", file=sys.stderr)
        return report.status
    for path in write(given.dataset, report):
        print(f"{path}: {path.stat().st_size:,} bytes")
    return PASSED


def write(dataset: str, report: Report) -> list[Path]:
    """Write the certificate of a dataset that passed; return its files.

    A `codecheck.yml` in which a checker has signed is kept as it is.
    """
    folder = Path("data", dataset)
    project = paths.project()
    measured = _measured(folder)
    about = _about(dataset, project, measured, report.summary)
    made = {paths.CITATION: _citation(about, project)}
    if not _signed(folder / CODECHECK):
        made[CODECHECK] = _codecheck(folder, about, project)
    for name, text in made.items():
        (folder / name).write_text(text)
    (folder / checksums.NAME).write_text(checksums.text(folder))
    whole = json.dumps(crate.metadata(folder, about), indent=1, ensure_ascii=False)
    (folder / crate.NAME).write_text(whole + "\n")
    return [folder / name for name in (paths.CITATION, CODECHECK, checksums.NAME, crate.NAME)]


def _measured(folder: Path) -> pl.DataFrame:
    """Return what the trials' tables say of where and when, a row for each trial."""
    wanted = ["server", "outcome", "started_at", "wall_us", "cpu", "cpus", "kernel", "os", "commit"]
    paths = sorted(folder.glob(f"*/{TABLES[0]}.parquet"))
    return pl.concat([pl.read_parquet(path, columns=wanted) for path in paths])


def _about(dataset: str, project: dict, trials: pl.DataFrame, checked: str) -> crate.About:
    """Return what the certificate says of a dataset."""
    spec = files.dataset(dataset)
    took = pl.duration(microseconds=pl.col("wall_us").fill_null(0))
    ended = trials.select(pl.col("started_at") + took)
    machines = (
        trials.drop_nulls("cpu").select("cpus", "cpu", "kernel", "os").unique().sort(pl.all())
    )
    described = [f"{cpus} CPUs ({cpu}), Linux {kernel}, {os}" for cpus, cpu, kernel, os
            in machines.iter_rows()]  # fmt: skip
    commits = trials["commit"].drop_nulls().unique().sort().to_list()
    count = int(trials["outcome"].is_in(MEASURED).sum())
    description = (
        f"{spec.title}. {len(trials)} trials of {trials['server'].n_unique()} servers, {count} of "
        f"them measured, on {' and '.join(described)}, by commit {', '.join(commits)}."
    )
    waived = [f"{name}: {reason}" for name, reason in spec.waives.items()]
    return crate.About(
        name=dataset,
        title=f"{project['title']}: dataset {dataset}",
        description=" ".join([description, *([f"Waived: {'; '.join(waived)}"] if waived else [])]),
        version=paths.version(),
        licence=project["license"],
        authors=tuple(author["name"] for author in project["authors"]),
        keywords=tuple(project["keywords"]),
        began_at=f"{trials['started_at'].min():%Y-%m-%dT%H:%M:%SZ}",
        ended_at=f"{ended.to_series().max():%Y-%m-%dT%H:%M:%SZ}",
        commits=tuple(commits),
        checked=checked,
    )


def _citation(about: crate.About, project: dict) -> str:
    """Return the dataset's own CITATION.cff, which refers to the project's."""
    return _yaml({
        "cff-version": project["cff-version"],
        "message": project["message"],
        "type": "dataset",
        "title": about.title,
        "abstract": about.description,
        "version": about.version,
        "date-released": about.ended_at[:10],
        "license": project["license"],
        "authors": project["authors"],
        "keywords": project["keywords"],
        "references": [
            {key: project[key] for key in ("type", "title", "authors", "version")}
        ],
    })  # fmt: skip


def _codecheck(folder: Path, about: crate.About, project: dict) -> str:
    """Return a codecheck.yml: what a checker is to make again; paths are from its folder."""
    tables = sorted(
        path for path in folder.glob("*/*.parquet") if path.stem in EVERY_TABLE and path.is_file()
    )
    manifest = [
        {
            "file": path.relative_to(folder).as_posix(),
            "comment": f"Table {path.stem!r} of {path.parent.name!r}, made of its raw logs.",
        }
        for path in tables
    ]
    manifest += [
        {"file": f"../../paper/{about.name}/deathmatch.{kind}", "comment": "The paper."}
        for kind in ("html", "pdf")
    ]
    fields = {
        "version": CODECHECK_VERSION,
        "paper": {"title": project["title"], "authors": project["authors"]},
        "manifest": manifest,
    }
    return _yaml(fields) + CHECKERS


def _signed(file: Path) -> bool:
    """Return whether a checker has put a name into it."""
    if not file.is_file():
        return False
    checkers = (yaml.safe_load(file.read_text()) or {}).get("codechecker") or []
    return any(checker.get("name") for checker in checkers)


class _Plain(yaml.SafeDumper):
    """Writes what occurs twice twice: not every reader of YAML knows anchors."""

    def ignore_aliases(self, data: object) -> bool:
        """Return that nothing is referred to."""
        return True


def _yaml(value: dict) -> str:
    return yaml.dump(value, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=100)
