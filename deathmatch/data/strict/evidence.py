"""What the rules look at, gathered once: each trial's record, raw logs and rows, and the tables.

In: a dataset's folder, with raw logs in folders of trials or packed in each experiment's archive.
Out: `Evidence`, which holds as long as the `with` block of `gather`.
"""

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import polars as pl

from deathmatch.capacity_search import search
from deathmatch.data import archive, inventory, laws, records, tables, tidy
from deathmatch.data.kernel_samples import SCHEMA as SAMPLES
from deathmatch.data.strict import cpu
from deathmatch.data.strict.table_equality import Difference, Held, differences
from deathmatch.errors import UserError
from deathmatch.plan import record as plan
from deathmatch.plan.dataset import PROBES, TABLES, Dataset
from deathmatch.plan.trial import Trial

# What reading a damaged log may raise.
DAMAGED = (UserError, OSError, ValueError, KeyError, IndexError, TypeError, AttributeError,
           EOFError, pl.exceptions.PolarsError)  # fmt: skip

Progress = Callable[[int, int], object]
# A table, or what is wrong with it.
Table = pl.DataFrame | str


@dataclass(frozen=True)
class Measured:
    """One trial as it was recorded; what cannot be read is empty, and `problem` says why."""

    where: str
    """Its folder in the dataset, `data/<dataset>/<experiment>/<server>/<variant>/<n>`."""
    folder: Path
    """Where its raw logs are now."""
    record: dict
    """As in `trial.json`, with today's keys."""
    problem: UserError | None = None
    damaged: str = ""
    """Why its tables could not be made again, if they could not."""
    rows: list[dict] = field(default_factory=list, repr=False)
    """Its rows of `points`, made again from the raw logs, in the order of the record's points."""
    probe_rows: list[dict] = field(default_factory=list, repr=False)
    """Its rows of `probes`, likewise."""
    samples: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=SAMPLES), repr=False)

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Experiment, server, variant and number, as its folder has them."""
        return tuple(self.where.split("/")[-4:])

    @property
    def experiment(self) -> str:
        """The experiment that its folder names."""
        return self.key[0]

    @property
    def schema_version(self) -> int:
        """Which version of the record it has; 1 where it cannot be read."""
        version = self.record.get("schema_version", 1)
        return version if isinstance(version, int) else 1

    @property
    def spec(self) -> dict:
        """Everything that decided what was measured."""
        return self.record.get("spec", {})

    @property
    def factors(self) -> dict:
        """Its variant."""
        return self.spec.get("factors", {})

    @property
    def under_load(self) -> bool:
        """Whether a load generator took part."""
        return bool(self.spec.get("client"))

    @property
    def points(self) -> list[dict]:
        """What the record says of each offered rate, of a trial under load."""
        return self.record.get("points", []) if self.under_load else []

    @property
    def probes(self) -> list[dict]:
        """What the record says of each rate that a search offered."""
        return (self.record.get("search") or {}).get("probes", [])

    @property
    def checks(self) -> list[dict]:
        """What the conformance checks of the server gave."""
        return self.record.get("conformance") or []

    @property
    def sysctl(self) -> dict[str, dict[str, str]]:
        """The kernel settings of each side."""
        return self.record.get("sysctl") or {}

    @property
    def logs(self) -> list[str]:
        """The names of the raw logs of its points and probes."""
        return [load["log"] for point, *_ in self.offers for load in plan.loads(point)]

    @property
    def offers(self) -> list[tuple[dict, float, dict]]:
        """Each of `points` and `probes`, with its duration in seconds and its load."""
        duration_s, load = self.spec.get("duration_s", 0), self.spec.get("load", {})
        return [(point, duration_s, load) for point in self.points] + [
            (probe, probe["duration_s"], search.patient(load)) for probe in self.probes
        ]

    @property
    def pairs(self) -> list[tuple[dict, dict]]:
        """Each of `points` with its row made again; none if that could not be done."""
        return list(zip(self.points, self.rows)) if len(self.points) == len(self.rows) else []

    @cached_property
    def shares(self) -> list[tuple[int, float, float]]:
        """As `cpu.shares`; none where server and client are on machines of their own."""
        if not len(self.samples) or self.record.get("separate"):
            return []
        return cpu.shares(self.samples, (self.record.get("machine") or {}).get("cpus") or 1)

    def log(self, name: str) -> str:
        """Return the text of one of its raw logs, empty if there is none."""
        file = self.folder / name
        return file.read_text(errors="replace") if file.is_file() else ""


@dataclass(frozen=True)
class Evidence:
    """A dataset as it lies there."""

    folder: Path
    dataset: Dataset
    trials: tuple[Measured, ...]
    planned: Mapping[str, Trial]
    """What the dataset plans and may hold by now, by folder."""
    wanted: tuple[str, ...]
    """The folders of what it plans, in the order in which they run; none of a frozen dataset, whose
    plan may have grown since."""
    tables: Mapping[tuple[str, str], Table]
    """Each experiment's tables, or what is wrong with one; `times` and `seconds` without rows."""
    differences: tuple[Difference, ...]
    """Where tables are not what the raw logs give."""
    packed: Mapping[str, str]
    """What is wrong with an experiment's archive, or where it is not what its folders hold."""
    unpacked: frozenset[str]
    """The experiments that have neither folders of trials nor an archive."""

    @cached_property
    def readable(self) -> list[Measured]:
        """The trials whose records can be read."""
        return [trial for trial in self.trials if trial.record]

    @cached_property
    def loaded(self) -> list[Measured]:
        """The trials that were measured under load."""
        return [trial for trial in self.readable if trial.points]

    @property
    def named(self) -> str:
        """The dataset's folder as findings name it."""
        return f"data/{self.dataset.name}"


@contextlib.contextmanager
def gather(
    folder: Path, dataset: Dataset, possible: Sequence[Trial] = (), chosen: Sequence[Trial] = (),
    progress: Progress = lambda done, total: None, *, recompute: bool = True,
) -> Iterator[Evidence]:  # fmt: skip
    """Yield what there is of a dataset; archives are unpacked aside until the block ends.

    `possible` are the trials that it may hold, `chosen` those that it must. `progress` is called
    with how many experiments are read, of how many. Without `recompute`, raw logs are not read: a
    trial has its record alone, and the laws are applied to the tables as they are.
    """
    names = sorted(path.name for path in folder.iterdir() if _is_experiment(path))
    trials: list[Measured] = []
    read_tables: dict[tuple[str, str], Table] = {}
    differing: list[Difference] = []
    packed, unpacked = {}, set()
    with tempfile.TemporaryDirectory(prefix="deathmatch-") as aside:
        for number, name in enumerate(names):
            progress(number, len(names))
            raw, problem = _raw(folder, name, Path(aside) if recompute else None)
            if problem:
                packed[name] = problem
            if raw is None:
                unpacked.add(name)
            held = Held({table: _table(folder, name, table) for table in dataset.tables(name)})
            kept = held.tables if recompute else _marked(name, held.tables)
            read_tables |= {(name, table): _kept(table, frame) for table, frame in kept.items()}
            read = _measured if recompute else _recorded
            for file in inventory.found(raw, name) if raw else []:
                trial, others = read(file, raw, dataset, held)
                trials.append(trial)
                differing += others
            if raw:
                differing += held.left(f"data/{dataset.name}/{name}")
        progress(len(names), len(names))
        yield Evidence(
            folder, dataset, tuple(trials), {str(trial.path): trial for trial in possible},
            tuple(str(trial.path) for trial in chosen), read_tables, tuple(differing), packed,
            frozenset(unpacked),
        )  # fmt: skip


def _is_experiment(path: Path) -> bool:
    return path.is_dir() and (
        any(path.glob("*.parquet")) or (path / archive.NAME).is_file()
        or any(path.glob(f"*/*/*/{inventory.RECORD}"))
    )  # fmt: skip


def _raw(folder: Path, experiment: str, aside: Path | None) -> tuple[Path | None, str]:
    """Return the folder under which an experiment's raw logs lie, and what is wrong with them.

    An archive is unpacked to `aside`; with None, it is ignored.
    """
    file = folder / experiment / archive.NAME
    here = folder if inventory.found(folder, experiment) else None
    if aside is None or not file.is_file():
        return here, ""
    try:
        archive.unpack(file, aside / experiment)
    except archive.DAMAGED as error:
        return here, f"it cannot be unpacked: {error}"
    if here is None:
        return aside, ""
    return here, _unlike(here / experiment, aside / experiment)


def _unlike(here: Path, packed: Path) -> str:
    def listed(root: Path) -> set[Path]:
        return {path.relative_to(root) for path in root.glob("*/*/*/**/*") if path.is_file()}

    ours, theirs = listed(here), listed(packed)
    for path in sorted(ours ^ theirs):
        return f"{path} is {'not in it' if path in ours else 'in it alone'}"
    for path in sorted(ours):
        if (here / path).read_bytes() != (packed / path).read_bytes():
            return f"{path} differs from what it holds"
    return ""


def _table(folder: Path, experiment: str, table: str) -> Table:
    """Return a table, or what is wrong with it."""
    file = folder / experiment / f"{table}.parquet"
    if not file.is_file():
        return "there is none"
    try:
        return tables.check(pl.read_parquet(file), experiment, table, file.name)
    except UserError as error:
        return error.what
    except (OSError, pl.exceptions.PolarsError) as error:
        return f"it cannot be read: {str(error).splitlines()[0]}"


def _kept(table: str, frame: Table) -> Table:
    """Return a table for the rules, which need no row of a histogram."""
    unneeded = table in ("times", "seconds") and isinstance(frame, pl.DataFrame)
    return frame.clear() if unneeded else frame


def _marked(experiment: str, held: Mapping[str, Table]) -> Mapping[str, Table]:
    """Return tables whose points have the marks of the laws that they break, whatever they had."""
    whole = all(isinstance(held.get(table), pl.DataFrame) for table in TABLES)
    if not whole or "offered_rate_rps" not in held["points"].columns:
        return held
    judged = laws.judgements(laws.evidence(experiment, held))
    return {**held, "points": laws.marked(held["points"], judged)}


def _where(file: Path, raw: Path, dataset: Dataset) -> str:
    return str(Path("data", dataset.name) / file.parent.relative_to(raw))


def _recorded(
    file: Path, raw: Path, dataset: Dataset, held: Held
) -> tuple[Measured, list[Difference]]:
    """Return one trial without its raw logs, and whether its row in the tables is missing."""
    where = _where(file, raw, dataset)
    lost = held.lacks("trials", where)
    held.forget(where)
    missing = [Difference(where, "rows", "trials: no row of this trial")] if lost else []
    try:
        return Measured(where, file.parent, records.read(file)), missing
    except UserError as error:
        return Measured(where, file.parent, {}, error), missing


def _measured(
    file: Path, raw: Path, dataset: Dataset, held: Held
) -> tuple[Measured, list[Difference]]:
    """Return one trial, and where its rows in the tables are not what its raw logs give."""
    where = _where(file, raw, dataset)
    try:
        record = records.read(file)
    except UserError as error:
        held.forget(where)
        return Measured(where, file.parent, {}, error), []
    try:
        rows = tidy.tidy(file)
        samples = pl.DataFrame(schema=SAMPLES)
        if made := list(rows["samples"]):
            samples = pl.DataFrame(made, schema_overrides=SAMPLES, infer_schema_length=None)
        trial = Measured(where, file.parent, record, rows=rows["points"],
                         probe_rows=rows[PROBES], samples=samples)  # fmt: skip
        return trial, differences(where, rows, held, dataset.frozen)
    except DAMAGED as error:
        held.forget(where)
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        return Measured(where, file.parent, record, damaged=why), []
