"""The files of tables, and the datasets that have them; no table is read."""

from pathlib import Path

from deathmatch.plan.paths import ROOT


def path_of(dataset: str, experiment: str, table: str) -> Path:
    """Return the file of a table, whether or not it exists."""
    return ROOT / "data" / dataset / experiment / f"{table}.parquet"


def measured() -> list[str]:
    """Return the names of the datasets that have tables here, sorted."""
    return sorted({path.parents[1].name for path in ROOT.glob("data/*/*/points.parquet")})


def bytes_per_trial(experiment: str) -> float | None:
    """Return the bytes of tables and archive per trial of an experiment, over all datasets.

    None if no trial was measured here.
    """
    # A dry run should not wait for polars.
    from pyarrow import parquet

    folders = [path_of(name, experiment, "trials").parent for name in measured()]
    folders = [folder for folder in folders if (folder / "trials.parquet").is_file()]
    trials = sum(parquet.read_metadata(folder / "trials.parquet").num_rows for folder in folders)
    sizes = (path.stat().st_size for folder in folders for path in folder.glob("*.*"))
    return sum(sizes) / trials if trials else None
