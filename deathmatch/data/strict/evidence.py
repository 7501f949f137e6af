"""The evidence for the checks of a dataset: its records, and its tables made again from raw logs.

Raw logs are in an experiment's archive, or in folders of trials. `Evidence` is valid within the
`with` block of `gathered`.
"""

import contextlib
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl
from rich.console import Console
from rich.progress import track

from deathmatch.checks.findings import Finding
from deathmatch.data import archive, inventory, records, tables, tidy
from deathmatch.data.laws.law import TRIAL
from deathmatch.errors import UserError
from deathmatch.plan import record as plan
from deathmatch.plan import trial as planning
from deathmatch.plan.dataset import PROBES, TABLES, Dataset

# The errors of reading a damaged log.
DAMAGED = (UserError, OSError, ValueError, KeyError, IndexError, TypeError, AttributeError,
           EOFError, pl.exceptions.PolarsError)  # fmt: skip
# Columns from servers/<name>/server.toml, which may have been reworded.
NOT_MEASURED = {"title", "language"}
AGAIN = "remove the trial's folder and run snakemake: it is measured again"
REMAKE = "delete the table and run snakemake: it is made again from the raw logs"


def fault(check: str, where: str, text: str, remedy: str = AGAIN) -> Finding:
    """Return a finding that rejects the dataset."""
    return Finding(check, "reject", where, text, remedy)


@dataclass(frozen=True)
class Trial:
    """A trial with a readable record, and the table rows made from its raw logs."""

    where: str
    """Its folder in the dataset, `data/<dataset>/<experiment>/<server>/<variant>/<n>`."""
    folder: Path
    """Where its raw logs are now."""
    record: dict
    """The content of `trial.json`."""
    rows: Mapping[str, list[dict]] = field(default_factory=dict, repr=False)
    """Its rows of each table, made from the raw logs."""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Experiment, server, variant and number, from its folder."""
        return tuple(self.where.split("/")[-4:])

    @property
    def spec(self) -> dict:
        """Everything that decided what was measured."""
        return self.record["spec"]

    @property
    def is_measured(self) -> bool:
        """Whether it was measured, with or without failures."""
        return self.record["outcome"] in plan.MEASURED

    @property
    def points(self) -> list[dict]:
        """The record's points; none of a trial without load."""
        return self.record["points"] if self.spec.get("client") else []

    @property
    def offers(self) -> list[tuple[dict, dict]]:
        """The record's points and probes, each with its row."""
        probes = (self.record.get("search") or {}).get("probes", [])
        of_points = zip(self.points, self.rows.get("points", []))
        return [*of_points, *zip(probes, self.rows.get(PROBES, []))]

    def log(self, name: str) -> str:
        """Return the text of one of its raw logs, empty if there is none."""
        file = self.folder / name
        return file.read_text(errors="replace") if file.is_file() else ""


@dataclass
class Evidence:
    """The content of a dataset's folder, and its plan."""

    folder: Path
    dataset: Dataset
    planned: Mapping[str, planning.Trial]
    """The trials that the dataset may hold, by folder."""
    wanted: Sequence[str]
    """The folders that it must hold; none for a frozen dataset, whose plan may have grown."""
    trials: list[Trial] = field(default_factory=list)
    found: set[str] = field(default_factory=set)
    """The folders of all trials that have a record, readable or not."""
    points: dict[str, pl.DataFrame] = field(default_factory=dict)
    """Each experiment's table of that name."""
    findings: list[Finding] = field(default_factory=list)
    """Faults of archives, records, logs and tables."""

    def name(self, *parts: object) -> str:
        """Return the name of a place in the dataset's folder, for findings."""
        return "/".join(["data", self.dataset.name, *map(str, parts)])

    def reject(self, check: str, where: str, text: str, remedy: str = AGAIN) -> None:
        """Add a fault."""
        self.findings.append(fault(check, where, text, remedy))


@contextlib.contextmanager
def gathered(
    folder: Path, dataset: Dataset, possible: Sequence[planning.Trial] = (),
    chosen: Sequence[planning.Trial] = (), *, from_raw: bool = True,
) -> Iterator[Evidence]:  # fmt: skip
    """Yield a dataset's evidence; archives are unpacked into a temporary folder meanwhile.

    `possible` are the trials that it may hold, `chosen` those that it must. Unless `from_raw`, no
    raw log is read: trials have only their records, if unpacked, and the laws are applied to the
    tables as they are. A terminal shows how many experiments are read.
    """
    planned = {str(trial.path): trial for trial in possible}
    evidence = Evidence(folder, dataset, planned, [str(trial.path) for trial in chosen])
    known = ("*.parquet", archive.NAME, f"*/*/*/{inventory.RECORD}")
    names = {path.relative_to(folder).parts[0] for one in known for path in folder.glob(f"*/{one}")}
    with tempfile.TemporaryDirectory(prefix="deathmatch-") as aside:
        shown = Console(stderr=True)
        for name in track(sorted(names), "experiments read", console=shown, transient=True):
            kept = _kept_tables(evidence, name)
            if from_raw:
                _make_again(evidence, name, kept, Path(aside))
            else:
                evidence.trials += _recorded(evidence, name, folder)
                if kept.keys() >= {*TABLES}:
                    kept["points"] = tidy.marked_points(name, kept)
            evidence.points |= {name: kept["points"]} if "points" in kept else {}
        yield evidence


def _kept_tables(evidence: Evidence, experiment: str) -> dict[str, pl.DataFrame]:
    """Return an experiment's tables that can be read and fit their schemas."""
    kept = {}
    for table in evidence.dataset.tables(experiment):
        file = evidence.folder / experiment / f"{table}.parquet"
        where = evidence.name(experiment, file.name)
        try:
            kept[table] = tables.check(pl.read_parquet(file), experiment, table, where)
        except UserError as error:
            evidence.reject("DM-TABLES", where, error.what, REMAKE)
        except (OSError, pl.exceptions.PolarsError) as error:
            why = f"it cannot be read: {str(error).splitlines()[0]}" if file.is_file() else "gone"
            evidence.reject("DM-TABLES", where, why, REMAKE)
    return kept


def _recorded(evidence: Evidence, experiment: str, raw: Path) -> Iterator[Trial]:
    """Yield an experiment's trials with a readable record, without rows."""
    for file in inventory.recorded(raw, experiment):
        where = evidence.name(file.parent.relative_to(raw))
        evidence.found.add(where)
        try:
            yield Trial(where, file.parent, records.read(file))
        except UserError as error:
            key = error.where.partition(", ")[2]
            evidence.reject("DM-RECORD", where, f"{key}: {error.what}" if key else error.what)


def _make_again(
    evidence: Evidence, experiment: str, kept: Mapping[str, pl.DataFrame], aside: Path
) -> None:
    """Make an experiment's tables again from its raw logs, and compare every value, bit by bit."""
    file, raw = evidence.folder / experiment / archive.NAME, evidence.folder
    if file.is_file():
        # The archive is what is published, whatever the folders hold.
        raw = aside
        try:
            archive.unpack(file, aside / experiment)
        except UserError as error:
            where, remedy = evidence.name(experiment, file.name), "pack it again: snakemake archive"
            evidence.reject("DM-ARCHIVE", where, error.what, remedy)
    if not inventory.recorded(raw, experiment):
        text, remedy = "no raw logs: no table could be made again", "put back folders or archive"
        where = evidence.name(experiment)
        evidence.findings.append(Finding("DM-RAW", "unchecked", where, text, remedy))
        return
    made = []
    for trial in _recorded(evidence, experiment, raw):
        try:
            rows = tidy.tidy(trial.folder / inventory.RECORD)
        except DAMAGED as error:
            text = f"no rows can be made of it: {type(error).__name__}: {error}".splitlines()[0]
            evidence.reject("DM-RAW", trial.where, text)
            continue
        made.append(rows)
        evidence.trials.append(replace(trial, rows=rows))
    for table, due in tidy.framed(experiment, made).items():
        # A frozen dataset keeps the former titles of its servers.
        named = NOT_MEASURED if evidence.dataset.frozen else set()
        for key, text in _differences(due, kept.get(table, due), named):
            evidence.reject("DM-TABLES", evidence.name(experiment, *key), f"{table}{text}", REMAKE)


def _differences(
    due: pl.DataFrame, kept: pl.DataFrame, left_out: set[str]
) -> Iterator[tuple[tuple, str]]:
    """Yield the trial and the text of each difference; at most one for each column."""
    due, kept = (frame.sort(TRIAL, maintain_order=True) for frame in (due, kept))
    counts = (frame.group_by(TRIAL, maintain_order=True).len().rows() for frame in (due, kept))
    wanted, there = (Counter({tuple(key): rows for *key, rows in each}) for each in counts)
    others = [key for key in {**wanted, **there} if wanted[key] != there[key]]
    for key in others:
        yield key, f": {there[key]} rows, where the raw logs give {wanted[key]}"
    for column in due.columns if not others else ():
        differs = due[column].ne_missing(kept[column])
        if column not in left_out and differs.any():
            row = differs.arg_max()
            text = f".{column}: {kept[column][row]}, where the raw logs give {due[column][row]}"
            more = f"; {differs.sum() - 1} more" if differs.sum() > 1 else ""
            yield due[TRIAL].row(row), text + more
