"""Tables of a planted dataset: those of points, and of the trials that these belong to."""

from pathlib import Path

import polars as pl
from conftest import read_tables_anew

from deathmatch.data import tables


def write(root: Path, dataset: str, experiment: str, points: list[dict], **trial: object) -> Path:
    """Write what of each point a table has columns for; `trial` is of all trials. Return where."""
    folder = root / "data" / dataset / experiment
    folder.mkdir(parents=True, exist_ok=True)
    trials = [{"outcome": "measured"} | point | trial for point in points]
    for table, rows in (("points", points), ("trials", trials), ("times", [])):
        names = tables.columns(experiment, table)
        known = [{name: row[name] for name in row if name in names} for row in rows]
        frame = pl.DataFrame(known, schema=names)
        shaped = frame.unique(maintain_order=True) if table == "trials" else frame
        tables.write(shaped, experiment, table, folder)
    read_tables_anew()
    return folder
