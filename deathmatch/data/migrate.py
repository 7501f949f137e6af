"""A dataset of an earlier version of this project in today's words: `./shell deathmatch migrate`.

In: `data/<dataset>/`. Out: the same folder; its tables have today's columns, its points are held
against today's laws. What was measured stays as it was written: reports, logs, `trial.json`,
archives.
"""

import argparse
from pathlib import Path

import polars as pl

from deathmatch.data import records, tables, tidy
from deathmatch.errors import UserError
from deathmatch.load import registry
from deathmatch.plan import files
from deathmatch.plan.dataset import TABLES
from deathmatch.plan.paths import ROOT


def main(given: argparse.Namespace) -> int:
    """Migrate the dataset named on the command line; print the tables that changed."""
    folder = ROOT / "data" / given.dataset
    if not folder.is_dir():
        known = ", ".join(measured(folder.parent)) or "none"
        remedy = f"datasets that are there: {known}"
        raise UserError("there is no such folder", f"data/{given.dataset}", remedy)
    changed = frames(folder)
    for path in changed:
        print(path.relative_to(ROOT))
    print(f"data/{given.dataset}: {len(changed)} changed")
    return 0


def measured(data: Path) -> list[str]:
    """Return the names of the datasets of which there are tables or trials, sorted."""
    names = [path.parts[len(data.parts)] for what in ("*.parquet", "*/*/*/trial.json")
             for path in data.glob(f"*/*/{what}")]  # fmt: skip
    return sorted(set(names))


def frames(dataset: Path) -> list[Path]:
    """Give the dataset's tables today's columns; return the files written.

    Points are held against today's laws, whatever an earlier version found.
    """
    made = []
    for folder in sorted({file.parent for file in dataset.glob("*/*.parquet")}):
        old = {file.stem: pl.read_parquet(file) for file in sorted(folder.glob("*.parquet"))}
        new = {name: todays(table, name, folder.name) for name, table in old.items()}
        if set(TABLES) <= set(new):
            new["points"] = tidy.marked_points(folder.name, new)
        for name, table in new.items():
            if not table.equals(old[name]) or table.columns != old[name].columns:
                tables.write(table, folder.name, name, folder)
                made.append(folder / f"{name}.parquet")
    return made


def todays(table: pl.DataFrame, name: str, experiment: str) -> pl.DataFrame:
    """Return an experiment's table with today's columns, in their order.

    A factor that came later has the level that was in force (`records.ADDED`), and so has the
    load generator. What was not recorded at its time is null.
    """
    wanted = {
        key: kind for key, kind in tables.columns(experiment, name).items()
        if key in table or key not in tables.SELDOM
    }  # fmt: skip
    own_client = files.experiment(experiment).client
    levels = records.ADDED.get(experiment, {}) | {registry.FACTOR: own_client}
    absent = [
        pl.lit(levels.get(key), kind).alias(key) for key, kind in wanted.items() if key not in table
    ]
    unknown = [key for key in table.columns if key not in wanted]
    return table.with_columns(absent).select(*wanted, *unknown)
