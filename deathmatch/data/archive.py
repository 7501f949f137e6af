"""Pack a dataset's raw logs for git: `snakemake archive --config dataset=NAME`.

Each experiment's trials go into `data/NAME/<experiment>/raw.tar.xz`, next to their tables: a tenth
of the size, with the same bytes whenever they are packed. `deathmatch unpack NAME` puts them back
where they were measured. The reports of a search's thirty probes are packed with only the bins that
tell how many replies were late.
"""

import argparse
import io
import lzma
import sys
import tarfile
from collections.abc import Iterable
from pathlib import Path

from deathmatch.capacity_search import search
from deathmatch.data.inventory import RECORD, Inventory
from deathmatch.data.probes import PROBE_LOGS
from deathmatch.errors import UserError, as_typed
from deathmatch.load import roundtrip
from deathmatch.plan import selection
from deathmatch.plan.paths import ROOT
from deathmatch.plan.selection import Choice

NAME = "raw.tar.xz"


def main(given: argparse.Namespace) -> int:
    """Pack the dataset named on the command line; print what was written."""
    for path in pack(given.dataset, selection.given(given), given.measured):
        print(f"{path}: {path.stat().st_size / 1e6:.1f} MB", file=sys.stderr)
    return 0


def pack(dataset: str, chosen: Choice, so_far: bool = False) -> list[Path]:
    """Write an archive for each experiment chosen, of the servers chosen; return their paths.

    With `so_far`, trials that are not measured are left out. Raises UserError, and writes nothing,
    if none is measured, or, without `so_far`, if one is missing.
    """
    held = Inventory(dataset, chosen)
    if so_far and not held.measured:
        what = f"none of {len(held.chosen)} trials is measured"
        raise UserError(what, f"data/{dataset}", "measure some first, or name another dataset")
    if not so_far and (missing := held.missing):
        words = ["snakemake --config", f"dataset={dataset}", *chosen.settings]
        raise UserError(
            f"{len(missing)} of {len(held.chosen)} trials are missing, the first {missing[0].path}",
            f"data/{dataset}",
            f"measure them first: {as_typed(' '.join(words))}; "
            "or pack what is there: deathmatch archive --measured",
        )
    folders: dict[Path, list[Path]] = {}
    for trial in held.measured:
        folders.setdefault(Path("data", dataset, trial.experiment.name), []).append(trial.path)
    return [write(folder / NAME, folder, paths) for folder, paths in sorted(folders.items())]


def write(file: Path, folder: Path, paths: Iterable[Path]) -> Path:
    """Write an archive of trials in a folder, with paths relative to it; return the file."""
    partial = file.with_suffix(".partial")
    with tarfile.open(partial, "w:xz", preset=9 | lzma.PRESET_EXTREME) as archive:
        for path in sorted(paths):
            for part in sorted(below for below in path.rglob("*") if below.is_file()):
                member = archive.gettarinfo(part, part.relative_to(folder))
                member.uid = member.gid = member.mtime = 0
                member.uname = member.gname = ""
                member.mode = 0o644
                content = packed(part)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return partial.rename(file)


def packed(file: Path) -> bytes:
    """Return a file's content in an archive: histograms of probes are coarser there."""
    content = file.read_bytes()
    if not file.name.startswith(PROBE_LOGS) or not content.startswith(b"roundtrip: "):
        return content
    # latin-1 decodes every byte of a damaged report.
    text = roundtrip.coarser(content.decode("latin-1"), (search.LIMIT_US, search.LONG_US))
    return text.encode("latin-1")


def logs_prefix(dataset: str, experiment: str) -> str:
    """Return the part of the path of a trial's raw logs before server, variant and number.

    It is the archive, or the experiment's folder; empty if the dataset keeps tables only.
    """
    folder = Path("data", dataset, experiment)
    if (ROOT / folder / NAME).is_file():
        return f"{folder / NAME}: "
    return f"{folder}/" if any((ROOT / folder).glob(f"*/*/*/{RECORD}")) else ""


def unpack(file: Path, to: Path) -> None:
    """Write an archive's trials into a folder.

    Raises UserError if it is truncated or has files that belong to no trial.
    """
    try:
        with tarfile.open(file) as members:
            for member in filter(tarfile.TarInfo.isfile, members):
                parts = Path(member.name).parts
                if len(parts) < 4 or ".." in parts or Path(member.name).is_absolute():
                    raise ValueError(f"{member.name} is not a file of a trial")
                path = to / Path(*parts)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(members.extractfile(member).read())
    except (tarfile.TarError, OSError, EOFError, ValueError) as error:
        raise UserError(f"it cannot be unpacked: {error}", str(file), "fetch it again") from None
