"""A dataset of an earlier version of this project in today's words: `./shell deathmatch migrate`.

In: `data/<dataset>/`. Out: the same folder; its tables have today's columns, its trials' folders
today's factors, its points are held against today's laws. What was measured stays as it was
written: reports, logs, `trial.json`, archives.
"""

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from deathmatch.data import archive, laws, offered_rate, records, tables, tidy
from deathmatch.errors import UserError
from deathmatch.load import registry
from deathmatch.plan import files
from deathmatch.plan.dataset import TABLES
from deathmatch.plan.record import MEASURED
from deathmatch.plan.root import ROOT


def main(given: argparse.Namespace) -> int:
    """Migrate the dataset named on the command line; print what was renamed."""
    folder = ROOT / "data" / given.dataset
    if not folder.is_dir():
        known = ", ".join(measured(folder.parent)) or "none"
        remedy = f"datasets that are there: {known}"
        raise UserError("there is no such folder", f"data/{given.dataset}", remedy)
    changed = [*folders(folder), *frames(folder)]
    for path in changed:
        print(path.relative_to(ROOT))
    print(f"data/{given.dataset}: {len(changed)} changed")
    return 0


def measured(data: Path) -> list[str]:
    """Return the names of the datasets of which there are tables or trials, sorted."""
    names = [path.parts[len(data.parts)] for what in ("*.parquet", "*/*/*/trial.json")
             for path in data.glob(f"*/*/{what}")]  # fmt: skip
    return sorted(set(names))


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
    """Give the dataset's tables today's columns and variants; return the files written.

    Points are held against today's laws, whatever an earlier version found.
    """
    made = []
    for folder in sorted({file.parent for file in dataset.glob("*/*.parquet")}):
        old = {file.stem: pl.read_parquet(file) for file in sorted(folder.glob("*.parquet"))}
        new = {name: todays(table, name, folder) for name, table in old.items()}
        if set(TABLES) <= set(new):
            judged = laws.judgements(laws.evidence(folder.name, new))
            new["points"] = laws.marked(new["points"], judged)
        for name, table in new.items():
            if not table.equals(old[name]) or table.columns != old[name].columns:
                tables.write(table, folder.name, name, folder)
                made.append(folder / f"{name}.parquet")
    return made


def todays(table: pl.DataFrame, name: str, folder: Path) -> pl.DataFrame:
    """Return a table of an experiment's folder with today's columns, in their order.

    What was not recorded at its time is null; whether a run was steady is read in its raw logs.
    """
    table = with_added(with_clients(renamed(table), folder.name), folder.name)
    unsteady = "course" not in table.columns
    wanted = tables.columns(folder.name, name)
    absent = [pl.lit(None, kind).alias(key) for key, kind in wanted.items() if key not in table]
    table = table.with_columns(absent).select(
        *wanted, *(key for key in table.columns if key not in wanted)
    )
    if name == "points" and "course" in wanted and unsteady:
        return with_courses(table, courses(folder))
    return table


def courses(folder: Path) -> pl.DataFrame:
    """Return the courses of an experiment's points: laws.KEY, `course` and `course_change`.

    From the raw logs of its trials, as they lie there or are packed; none without either.
    """
    with tempfile.TemporaryDirectory() as unpacked:
        place = folder
        if not any(folder.glob("*/*/*/trial.json")) and (folder / archive.NAME).exists():
            place = Path(unpacked)
            archive.unpack(folder / archive.NAME, place)
        rows = [
            row for path in sorted(place.glob("*/*/*/trial.json")) for row in _courses(path)
        ]  # fmt: skip
    kinds = {"server": pl.String, "variant": pl.String, "n": pl.Int64, "offered_rate_rps": pl.Int64}
    kinds |= {"course": pl.String, "course_change": pl.Float64}
    return pl.DataFrame(rows, schema=kinds, orient="row")


def _courses(path: Path) -> Iterator[dict]:
    trial = records.read(path)
    client = registry.generator(trial["spec"]["client"])
    for point in trial["points"]:
        report = offered_rate.merged(client, offered_rate.read(client, point, path.parent))
        yield {
            "server": trial["server"],
            "variant": records.variant(path.parts[-3]),
            "n": trial["n"],
            "offered_rate_rps": point["offered_rate_rps"],
            **tidy.course(client, report, trial["spec"]["duration_s"]),
        }


def with_courses(points: pl.DataFrame, courses: pl.DataFrame) -> pl.DataFrame:
    """Return the points with those courses, in their order; null for those that have none."""
    names = points.columns
    bare = points.drop("course", "course_change")
    return bare.join(courses, on=laws.KEY, how="left", maintain_order="left").select(names)


def renamed(table: pl.DataFrame) -> pl.DataFrame:
    """Return a tidy table with today's columns and names of variants, its rows as before."""
    variants = table["variant"].unique()
    names = {name: records.variant(name) for name in variants}
    return table.rename(records.COLUMNS, strict=False).with_columns(
        pl.col("variant").replace(names)
    )


def with_added(table: pl.DataFrame, experiment: str) -> pl.DataFrame:
    """Return a table with the factors that its experiment did not have when it was measured.

    They have the level that was in force (`records.ADDED`).
    """
    today = tables.keys(experiment)
    return table.with_columns(
        pl.lit(level, today[name]).alias(name)
        for name, level in records.ADDED.get(experiment, {}).items()
        if name not in table.columns
    )


def with_clients(table: pl.DataFrame, experiment: str) -> pl.DataFrame:
    """Return `trials` with what is known of the clients, where there could be only one.

    Any other table, and one that has it already, is returned as it is.
    """
    if "client_cpus" not in table.columns or "clients" in table.columns:
        return table
    clients = 1 if files.experiment(experiment).client else None
    added = table.with_columns(
        clients=pl.when(pl.col("outcome").is_in(MEASURED)).then(pl.lit(clients, pl.Int64)),
        late_us=pl.lit(None, pl.Int64),
        clock_bound_us=pl.lit(None, pl.Int64),
        machines=pl.lit(None, pl.List(pl.String)),
    )
    before = table.columns[: table.columns.index("client_cpus") + 1]
    new = [name for name in added.columns if name not in table.columns]
    return added.select(*before, *new, *table.columns[len(before) :])
