"""Are a dataset's tables what its raw logs give? Every value is compared, floats bit by bit."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Literal

import polars as pl

from deathmatch.data import laws, limits, tidy
from deathmatch.plan.dataset import TABLES

KEY = ("server", "variant", "n")
# They come from servers/<name>/server.toml, which may have been reworded since.
NOT_MEASURED = {"title", "language"}
# Whose limit a point shows depends on all trials of the experiment.
OF_ALL_TRIALS = "limit"


Table = pl.DataFrame | str
"""A table, or what is wrong with it."""


@dataclass(frozen=True)
class Difference:
    """Where a table is not what the raw logs give: other rows, or other values in them."""

    where: str
    kind: Literal["rows", "values"]
    what: str


@dataclass
class Held:
    """An experiment's tables, each split by trial; those that were compared are gone from it."""

    tables: Mapping[str, pl.DataFrame | str]
    of_trial: dict[str, dict[tuple, pl.DataFrame]] = field(init=False)

    def __post_init__(self) -> None:
        self.of_trial = {
            table: frame.partition_by(KEY, as_dict=True, maintain_order=True)
            for table, frame in self.tables.items()
            if isinstance(frame, pl.DataFrame)
        }

    def take(self, table: str, where: str) -> pl.DataFrame | None:
        """Return a trial's rows of a table, and forget them; None if it has none."""
        *_, server, variant, n = PurePath(where).parts
        return self.of_trial[table].pop((server, variant, int(n) if n.isdecimal() else 0), None)

    def lacks(self, table: str, where: str) -> bool:
        """Return whether the table can be read and has no row of this trial."""
        return table in self.of_trial and self.take(table, where) is None

    def forget(self, where: str) -> None:
        """Forget a trial's rows, which cannot be compared."""
        for table in self.of_trial:
            self.take(table, where)

    def left(self, folder: str) -> Iterator[Difference]:
        """Return the rows of trials of which there are no raw logs."""
        for table, parts in self.of_trial.items():
            for server, variant, n in parts:
                where = f"{folder}/{server}/{variant}/{n}"
                yield Difference(where, "rows", f"{table}: rows of a trial without raw logs")


def differences(
    where: str, rows: Mapping[str, list[dict]], held: Held, frozen: bool
) -> list[Difference]:
    """Return where the tables differ from a trial's rows, made again from its raw logs.

    At most one for each column. A frozen dataset keeps the titles that its servers had.
    """
    differing = []
    for table, made in tidy.framed(where.split("/")[2], [rows]).items():
        if table not in held.of_trial:
            continue
        kept = held.take(table, where)
        if kept is None:
            kept = made.clear()
        if len(kept) != len(made):
            what = f"{table}: {len(kept)} rows, where the raw logs give {len(made)}"
            differing.append(Difference(where, "rows", what))
            continue
        if made.equals(kept):
            continue
        differing += [
            Difference(where, "values", f"{table}.{column}: {what}")
            for column in made.columns
            if not (frozen and column in NOT_MEASURED)
            and column != OF_ALL_TRIALS
            and (what := _differing(made[column], kept[column]))
        ]
    return differing


def are_whole(tables: Mapping[str, Table]) -> bool:
    """Return whether every table of an experiment could be read."""
    return all(isinstance(tables.get(table), pl.DataFrame) for table in TABLES)


def wrong_limits(
    folder: str, experiment: str, tables: Mapping[str, Table]
) -> Iterator[Difference]:  # fmt: skip
    """Return where points of an experiment have another limit than the whole of its tables gives.

    For tables that are otherwise what the raw logs give.
    """
    if not are_whole(tables) or OF_ALL_TRIALS not in tables["points"].columns:
        return
    points = tables["points"]
    due = limits.marked(laws.evidence(experiment, tables))
    other = points[OF_ALL_TRIALS].ne_missing(due[OF_ALL_TRIALS])
    for row in points.filter(other).iter_rows(named=True):
        where = f"{folder}/{row['server']}/{row['variant']}/{row['n']}"
        yield Difference(where, "values", f"points.{OF_ALL_TRIALS}: {row[OF_ALL_TRIALS]}")


def _differing(made: pl.Series, kept: pl.Series) -> str:
    other = made.ne_missing(kept)
    if not other.any():
        return ""
    row = other.arg_max()
    more = f", and {other.sum() - 1} more" if other.sum() > 1 else ""
    return f"{kept[row]} in row {row + 1}, where the raw logs give {made[row]}{more}"
