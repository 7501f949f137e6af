"""Judge a sitting: `./shell deathmatch sitting DATASET NAME`, as a run does after its last trial.

The trials of an accepted sitting are packed with the experiment's other trials, those of a refused
one in an archive of their own.
"""

import argparse
import datetime as dt
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from deathmatch.data import archive, records, refusal, sittings, tidy
from deathmatch.data.inventory import Inventory
from deathmatch.data.sittings import Attempt
from deathmatch.errors import UserError, as_typed
from deathmatch.plan import files
from deathmatch.plan.selection import Choice

UTC = "%Y-%m-%dT%H:%M:%SZ"


def main(given: argparse.Namespace) -> int:
    """Judge the sitting named on the command line, and pack its trials; return 0.

    Raises UserError for a sitting that lacks trials, and for one that is refused, once its trials
    are packed.
    """
    dataset, name = given.dataset, given.sitting
    held = Inventory(dataset, Choice(sittings=(name,)))
    again = as_typed(f"snakemake --config dataset={dataset} sitting={name}")
    if held.missing:
        what = f"{len(held.missing)} of the {len(held.chosen)} trials of {name} are missing"
        if name in sittings.accepted(dataset):
            again = as_typed(f"deathmatch unpack {dataset}")
        raise UserError(what, f"data/{dataset}", f"first run {again}")
    before = sittings.latest(dataset).get(name)
    attempt = _attempt(dataset, name, list(held.measured.values()), given.refuse, before)
    # A run in another clone, which has no file of the sitting in build/, judges it again.
    judged = before and not before.refused and before.began == attempt.began
    if judged and not given.refuse:
        print(f"{name}: {before}", file=sys.stderr)
        return 0
    print(f"{name}: {attempt}; {_numbers(attempt)}", file=sys.stderr)
    _keep(held, attempt)
    if attempt.refused:
        what, where = f"{name} is {attempt}", f"data/{dataset}/{sittings.NAME}"
        raise UserError(what, where, f"its trials are set aside; repeat it: {again}")
    return 0


def _numbers(attempt: Attempt) -> str:
    known = {name: value for name, value in attempt.numbers.items() if value is not None}
    return ", ".join(f"{name} {value:.2%}" for name, value in known.items()) or "no number"


def _keep(held: Inventory, attempt: Attempt) -> None:
    """Record the attempt; pack its trials with the experiment's, or separately if refused."""
    dataset, trials = held.dataset, list(held.measured)
    experiment = trials[0].experiment.name
    folder = held.folder / experiment
    if attempt.refused:
        aside = held.folder / sittings.ASIDE / f"{attempt.sitting}-{attempt.attempt}.tar.xz"
        aside.parent.mkdir(exist_ok=True)
        archive.write(aside, folder, [trial.path for trial in trials])
    sittings.add(dataset, attempt)
    for trial in trials if attempt.refused else ():
        shutil.rmtree(trial.path)
    kept = _accepted(dataset, experiment)
    if kept:
        archive.pack(dataset, Choice(sittings=kept), so_far=True)
    else:
        (folder / archive.NAME).unlink(missing_ok=True)
    if attempt.refused and not (kept and tidy.written(dataset, folder)):
        for table in folder.glob("*.parquet"):
            table.unlink()


def _attempt(
    dataset: str, name: str, measured: Sequence[Path], refused: str, before: Attempt | None
) -> Attempt:
    """Return the attempt at a sitting that has these records; `before` is the one before it."""
    read = list(map(records.read, measured))
    experiment = read[0]["experiment"]
    points = tidy.frames(experiment, measured)["points"]
    numbers = refusal.numbers(experiment, points, lambda: _before(dataset, name, read[0]))
    took_us = [record.get("wall_us") or 0 for record in read]
    ends = [
        dt.datetime.strptime(record["started_at"], UTC) + dt.timedelta(microseconds=us)
        for record, us in zip(read, took_us, strict=True)
    ]

    def of_machine(key: str) -> str:
        known = {(record.get("machine") or {}).get(key) for record in read}
        return "; ".join(sorted(filter(None, known)))

    return Attempt(
        sitting=name, attempt=before.attempt + 1 if before else 1,
        began=min(record["started_at"] for record in read), ended=max(ends).strftime(UTC),
        cpu=of_machine("cpu"), kernel=of_machine("kernel"), commit=of_machine("commit"),
        hours=round(sum(took_us) / 3.6e9, 4), trials=len(read), numbers=numbers,
        refused=refused or refusal.why(numbers, files.dataset(dataset).refuse),
    )  # fmt: skip


def _accepted(dataset: str, experiment: str) -> tuple[str, ...]:
    """Return the names of an experiment's accepted sittings, in the order of the dataset."""
    kept, every = sittings.accepted(dataset), files.dataset(dataset).sittings
    return tuple(one.name for one in every if one.experiment == experiment and one.name in kept)


def _before(dataset: str, name: str, one: Mapping[str, Any]) -> pl.DataFrame | None:
    """Return the points of the other accepted sittings on a record's kind of CPU; None if none."""
    experiment, cpu = one["experiment"], one["machine"]["cpu"]
    others = tuple(kept for kept in _accepted(dataset, experiment) if kept != name)
    held = Inventory(dataset, Choice(sittings=others)).measured if others else {}
    same = [file for file in held.values() if records.read(file)["machine"]["cpu"] == cpu]
    return tidy.frames(experiment, same)["points"] if same else None
