"""Pack a dataset's raw logs for git: `snakemake archive --config dataset=NAME`.

Each experiment's trials go into `data/NAME/<experiment>/raw.tar.xz`, beside the tables that were
made of them: a tenth of the size, the same bytes whenever they are packed. Unpacked where it lies,
with tar(1), it is what was measured.
"""

import argparse
import os
import sys
import tarfile
from pathlib import Path

from deathmatch.data.inventory import Inventory
from deathmatch.errors import UserError
from deathmatch.plan import choice
from deathmatch.plan.choice import Choice
from deathmatch.plan.root import ROOT
from deathmatch.plan.typed import typed

NAME = "raw.tar.xz"


def main(given: argparse.Namespace) -> int:
    """Pack the dataset named on the command line; print what was written."""
    os.chdir(ROOT)
    for path in pack(given.dataset, choice.given(given)):
        print(f"{path}: {path.stat().st_size / 1e6:.1f} MB", file=sys.stderr)
    return 0


def pack(dataset: str, chosen: Choice) -> list[Path]:
    """Write an archive for each experiment chosen, of the servers chosen; return their paths.

    Raises UserError, and writes nothing, if a trial of them is missing.
    """
    held = Inventory(dataset, chosen)
    if missing := held.missing:
        words = ["snakemake --config", f"dataset={dataset}", *chosen.settings]
        raise UserError(
            f"{len(missing)} of {len(held.chosen)} trials are missing, the first {missing[0].path}",
            f"data/{dataset}",
            f"measure them first: {typed(' '.join(words))}; "
            "or pack what is there, by servers= or experiments=",
        )
    folders: dict[Path, list[Path]] = {}
    for trial in held.chosen:
        folders.setdefault(Path("data", dataset, trial.experiment.name), []).append(trial.path)
    return [_pack(folder, sorted(paths)) for folder, paths in sorted(folders.items())]


def _pack(folder: Path, paths: list[Path]) -> Path:
    def anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = member.mtime = 0
        member.uname = member.gname = ""
        member.mode = 0o644
        return member

    partial = folder / f"{NAME}.partial"
    with tarfile.open(partial, "w:xz", preset=9) as archive:
        for path in paths:
            for file in sorted(found for found in path.rglob("*") if found.is_file()):
                archive.add(file, file.relative_to(folder), filter=anonymous)
    return partial.rename(folder / NAME)
