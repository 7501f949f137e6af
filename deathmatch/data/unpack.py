"""Put a dataset's raw logs back where they were measured: `deathmatch unpack NAME`.

`snakemake --config dataset=NAME` then measures the trials that are left. A trial that has a record
here stays as it is.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from deathmatch.data import archive, inventory
from deathmatch.errors import UserError


def main(given: argparse.Namespace) -> int:
    """Unpack the dataset named on the command line; print the number of trials of each archive."""
    folder = Path("data", given.dataset)
    packed = sorted(folder.glob(f"*/{archive.NAME}"))
    if not packed:
        what = f"no experiment there has a {archive.NAME}"
        raise UserError(what, str(folder), "pack some: deathmatch archive NAME --measured")
    for file in packed:
        there, kept = unpack(file)
        also = f", {kept} were there" if kept else ""
        print(f"{file}: {there} trials{also}", file=sys.stderr)
    return 0


def unpack(file: Path) -> tuple[int, int]:
    """Put an archive's trials next to it; return how many were added, and how many were there.

    Each is added whole or not at all. Raises UserError, and changes nothing, if the archive is
    damaged.
    """
    folder, came, kept = file.parent, 0, 0
    with tempfile.TemporaryDirectory(dir=folder, prefix=".unpacked-") as aside:
        archive.unpack(file, Path(aside))
        for trial in sorted(Path(aside).glob("*/*/*")):
            to = folder / trial.relative_to(aside)
            if (to / inventory.RECORD).exists():
                kept += 1
                continue
            # A folder without a record is left from an interrupted trial.
            shutil.rmtree(to, ignore_errors=True)
            to.parent.mkdir(parents=True, exist_ok=True)
            trial.rename(to)
            came += 1
    return came, kept
