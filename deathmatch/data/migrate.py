"""A dataset of an earlier version of this project in today's words: `./shell deathmatch migrate`.

In: `data/<dataset>/`. Out: the same folder; its tables have today's columns, its trials' folders
today's factors. What was measured stays as it was written: reports, logs, `trial.json`, archives.
"""

import argparse
from pathlib import Path

import polars as pl

from deathmatch.data import records, tables
from deathmatch.errors import UserError
from deathmatch.plan import files
from deathmatch.plan.record import MEASURED
from deathmatch.plan.root import ROOT


def main(given: argparse.Namespace) -> int:
    """Migrate the dataset named on the command line; print what was renamed."""
    folder = ROOT / "data" / given.dataset
    if not folder.is_dir():
        known = ", ".join(sorted(path.name for path in folder.parent.iterdir() if path.is_dir()))
        raise UserError("there is no such folder", f"data/{given.dataset}", f"there are: {known}")
    changed = [*folders(folder), *frames(folder)]
    for path in changed:
        print(path.relative_to(ROOT))
    print(f"data/{given.dataset}: {len(changed)} changed")
    return 0


def folders(dataset: Path) -> list[Path]:
    """Rename the variants' folders whose factors have another name today; return the new paths."""
    made = []
    for old in sorted(dataset.glob("*/*/*=*/")):
        new = old.with_name(records.variant(old.name))
        if new == old:
            continue
        if new.exists():
            what = f"both {old.name} and {new.name} are there"
            raise UserError(what, str(old.parent), "keep one of them and run again")
        made.append(old.rename(new))
    return made


def frames(dataset: Path) -> list[Path]:
    """Rename the columns and variants in the dataset's tables; return the files written."""
    made = []
    for file in sorted(dataset.glob("*/*.parquet")):
        old = pl.read_parquet(file)
        new = with_clients(renamed(old), file.parent.name)
        if not new.equals(old) or new.columns != old.columns:
            tables.write(new, file.parent.name, file.stem, file.parent)
            made.append(file)
    return made


def renamed(table: pl.DataFrame) -> pl.DataFrame:
    """Return a tidy table with today's columns and names of variants, its rows as before."""
    variants = table["variant"].unique()
    names = {name: records.variant(name) for name in variants}
    return table.rename(records.COLUMNS, strict=False).with_columns(
        pl.col("variant").replace(names)
    )


def with_clients(table: pl.DataFrame, experiment: str) -> pl.DataFrame:
    """Return `trials` with what is known of the clients, where there could be only one.

    Any other table, and one that has it already, is returned as it is.
    """
    if "client_cpus" not in table.columns or "clients" in table.columns:
        return table
    one = 1 if files.experiment(experiment).client else None
    added = table.with_columns(
        clients=pl.when(pl.col("outcome").is_in(MEASURED)).then(pl.lit(one, pl.Int64)),
        late_us=pl.lit(None, pl.Int64),
        clock_bound_us=pl.lit(None, pl.Int64),
        machines=pl.lit(None, pl.List(pl.String)),
    )
    before = table.columns[: table.columns.index("client_cpus") + 1]
    new = [name for name in added.columns if name not in table.columns]
    return added.select(*before, *new, *table.columns[len(before) :])
