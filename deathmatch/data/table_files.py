"""Where tables are, and which dataset has them; none is read."""

from pathlib import Path

from deathmatch.plan import files
from deathmatch.plan.paths import ROOT


def path_of(dataset: str, experiment: str, table: str) -> Path:
    """Return the file of a table, whether or not it exists."""
    return ROOT / "data" / dataset / experiment / f"{table}.parquet"


def measured() -> list[str]:
    """Return the names of the datasets that have tables here, sorted."""
    found = (path for above in ("", "*/") for path in ROOT.glob(f"data/{above}*/*/points.parquet"))
    return sorted({str(path.parents[1].relative_to(ROOT / "data")) for path in found})


def bytes_per_trial(experiment: str) -> float | None:
    """Return how many bytes of tables and archive a trial of an experiment has, over all datasets.

    None where none was measured here.
    """
    # A dry run does not wait for polars.
    from pyarrow import parquet

    folders = [path_of(name, experiment, "trials").parent for name in measured()]
    folders = [folder for folder in folders if (folder / "trials.parquet").is_file()]
    trials = sum(parquet.read_metadata(folder / "trials.parquet").num_rows for folder in folders)
    sizes = (path.stat().st_size for folder in folders for path in folder.glob("*.*"))
    return sum(sizes) / trials if trials else None


def dataset_with(dataset: str, experiment: str, table: str = "trials") -> str:
    """Return the dataset whose table the paper of `dataset` shows for an experiment.

    It is the dataset itself, unless one that its file names under `also` has the table instead.
    """
    also = files.dataset(dataset).also if files.exists("dataset", dataset) else ()
    tabled = (name for name in (dataset, *also) if path_of(name, experiment, table).is_file())
    return next(tabled, dataset)


def deciders(dataset: str) -> tuple[str, ...]:
    """Return the datasets that a dataset's file names under `decided_by`; none without a file."""
    return files.dataset(dataset).decided_by if files.exists("dataset", dataset) else ()


def of_other_datasets(dataset: str) -> dict[str, str]:
    """Return the experiments that the paper of a dataset shows of another one, each with that."""
    holders = {name: dataset_with(dataset, name) for name in files.names("experiment")}
    return {name: other for name, other in holders.items() if other != dataset}
