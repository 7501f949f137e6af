"""The ledger of a dataset in a file: a run computes it once for its notebooks and explorer.

The rules of Snakemake that need the ledger name the folder of the files in the environment, FOLDER;
nobody else reads them, so that none is older than its tables. Entries are pickled: what is read has
the types of what was written, and both are made by the code of one run.
"""

import os
import pickle
from collections.abc import Sequence
from pathlib import Path

from deathmatch.analysis.ledger import Entry

FOLDER = "DEATHMATCH_LEDGERS"


def write(entries: Sequence[Entry], out: Path) -> None:
    """Write a ledger to a file, whole or not at all."""
    out.parent.mkdir(parents=True, exist_ok=True)
    aside = out.with_name(f".{out.name}.part")
    aside.write_bytes(pickle.dumps(list(entries)))
    aside.replace(out)


def read(dataset: str) -> list[Entry] | None:
    """Return the dataset's ledger from the folder FOLDER; None if it is not there."""
    folder = os.environ.get(FOLDER)
    file = Path(folder, f"{dataset}.pickle") if folder else None
    return pickle.loads(file.read_bytes()) if file and file.is_file() else None
