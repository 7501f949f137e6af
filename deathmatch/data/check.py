"""Is a dataset fit to be shown beside others? `snakemake check_dataset --config dataset=NAME`.

Says what is wrong, and in which file: trials that are missing or of another specification,
records and tables that break their schema, toolchains or machines that are mixed, counters that
cannot be, names and places of somebody's machine.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from deathmatch.builds import toolchain
from deathmatch.data import laws, private, records, tables
from deathmatch.data.inventory import Inventory
from deathmatch.data.strict import run as strict
from deathmatch.errors import UserError
from deathmatch.hosts import node
from deathmatch.plan import files, selection
from deathmatch.plan.dataset import TABLES
from deathmatch.plan.root import ROOT
from deathmatch.plan.selection import Choice

SHOWN = 5  # findings of one kind

Finding = tuple[str, str]  # what, where


def main(given: argparse.Namespace) -> int:
    """Print what is wrong with the dataset named on the command line; return 1 if anything is.

    With `--strict`, as `data.strict.run`.
    """
    if given.strict:
        return strict.main(given)
    dataset, chosen = given.dataset, selection.given(given)
    os.chdir(ROOT)
    found: dict[str, list[str]] = {}
    for what, where in findings(dataset, chosen):
        found.setdefault(what, []).append(where)
    for what, places in found.items():
        more = f"\n    and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
        shown = "\n    ".join(places[:SHOWN])
        print(f"deathmatch: data/{dataset}: {what}:\n    {shown}{more}", file=sys.stderr)
    if not found:
        part = "" if chosen.whole else f", as far as {' '.join(chosen.settings)} chooses,"
        told = "complete, of one machine and one toolchain an experiment, and plausible"
        print(f"data/{dataset}{part} is {told}")
    return 1 if found else 0


def findings(dataset: str, chosen: Choice) -> Iterator[Finding]:
    """Return everything that is wrong with a dataset; UserError if there is no such dataset.

    What is not chosen may be missing; what is there of it is looked at all the same.
    """
    frozen = files.dataset(dataset).frozen
    # What is not chosen is looked at too.
    held = Inventory(dataset)
    folder, planned = held.folder, {}
    if not frozen:
        for trial in sorted(Inventory(dataset, chosen).missing, key=lambda trial: trial.path):
            yield "trials are missing; run snakemake", str(trial.path)
        for path in held.strange:
            yield "trials that the dataset does not have; remove them", str(path.parent)
        # Of a server that someone named there may be more than the dataset asks for.
        planned = held.possible
    found = {}
    for path in held.files:
        try:
            found[path] = records.whole(path)
        except records.NotJson as error:
            yield "records that are no JSON", str(error)
        except UserError as error:
            yield "records that break their schema", str(error)
    for path in sorted(found.keys() & planned.keys()):
        if found[path]["spec"] != json.loads(planned[path].spec_text()):
            yield "trials measured from other sources or rates; run snakemake", str(path.parent)
    yield from _mixed(found)
    for experiment in chosen.experiments or files.names("experiment"):
        if (folder / experiment).is_dir():
            measured = sum(path.parts[2] == experiment for path in held.files)
            yield from _tables(dataset, experiment, measured)
    for where, what in private.found(folder):
        yield "names or places of somebody's machine; take them out", f"{where}: {what}"


def _mixed(records: dict[Path, dict]) -> Iterator[Finding]:
    for tool, places in toolchain.differences((str(p.parent), r) for p, r in records.items()):
        for identity, where in places.items():
            yield f"several toolchains: {tool} is not always the same", f"{identity}: {where}"
    for key, places in node.differences((str(p), r) for p, r in records.items()):
        for value, where in places.items():
            yield f"several machines: {key} is not always the same", f"{value}: {where}"


def _tables(dataset: str, experiment: str, trials: int) -> Iterator[Finding]:
    frames = {}
    for table in files.dataset(dataset).tables(experiment):
        try:
            frames[table] = tables.read(dataset, experiment, table)
        except UserError as error:
            yield "tables that are absent or break their schema", str(error)
        except (OSError, pl.exceptions.PolarsError) as error:
            where = tables.path_of(dataset, experiment, table).relative_to(ROOT)
            yield "tables that cannot be read", f"{where}: {str(error).splitlines()[0]}"
    if "trials" in frames and trials and len(frames["trials"]) != trials:
        where = f"data/{dataset}/{experiment}/trials.parquet"
        held = len(frames["trials"])
        where = f"{where}: {held} trials, where the folder has {trials}"
        yield "tables made from other trials; run snakemake", where
    if set(TABLES) <= set(frames) and "offered_rate_rps" in frames["points"].columns:
        yield from implausible(experiment, f"data/{dataset}/{experiment}", frames)


def implausible(experiment: str, folder: str, frames: dict[str, pl.DataFrame]) -> Iterator[Finding]:
    """Return what no sound measurement says, by the laws; a run of its own kind is none of it."""
    evidence = laws.evidence(experiment, frames)
    for law in laws.LAWS.values() if evidence.client else ():
        for broken in law.seen(evidence) if law.severity == "reject" else ():
            what = f"impossible counters: {law.id} is broken: {law.statement}"
            yield what, f"{folder}/{broken.where}: {broken.what}"
