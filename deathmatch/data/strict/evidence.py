"""What the rules look at, gathered once: each trial's record, raw logs and rows, and the tables.

In: a dataset's folder, with raw logs in folders of trials or packed in each experiment's archive.
Out: `Evidence`, which holds as long as the `with` block of `gather`.
"""

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl

from deathmatch.data import archive, inventory, judged, records, tables, tidy
from deathmatch.data.kernel_samples import SCHEMA as SAMPLES
from deathmatch.data.strict.measured import Measured
from deathmatch.data.strict.table_equality import (
    Difference,
    Held,
    Table,
    are_whole,
    differences,
    wrong_limits,
)
from deathmatch.errors import UserError
from deathmatch.plan.dataset import PROBES, Dataset
from deathmatch.plan.trial import Trial

# What reading a damaged log may raise.
DAMAGED = (UserError, OSError, ValueError, KeyError, IndexError, TypeError, AttributeError,
           EOFError, pl.exceptions.PolarsError)  # fmt: skip

Progress = Callable[[int, int], object]


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
            own: list[Difference] = []
            for file in inventory.recorded(raw, name) if raw else []:
                trial, others = read(file, raw, dataset, held)
                trials.append(trial)
                own += others
            if raw:
                own += held.left(f"data/{dataset.name}/{name}")
            if recompute and not own:
                own += wrong_limits(f"data/{dataset.name}/{name}", name, held.tables)
            differing += own
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
    here = folder if inventory.recorded(folder, experiment) else None
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
        if archive.packed(here / path) != (packed / path).read_bytes():
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
    """Return tables whose points have the marks of `data.judged`, whatever they had."""
    if not are_whole(held) or "offered_rate_rps" not in held["points"].columns:
        return held
    return {**held, "points": judged.points(experiment, held)}


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
