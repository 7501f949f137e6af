"""A dataset's checksums, in the file that sha256sum(1) of coreutils writes and checks."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from deathmatch.data import archive

NAME = "checksums.sha256"
# They are made of the checksums, are filled in by a checker, or say that a run is over.
LEFT_OUT = {NAME, "ro-crate-metadata.json", "codecheck.yml", "complete"}


def listed(folder: Path) -> list[Path]:
    """Return the dataset's files that have a checksum, sorted by name, hidden ones left out.

    Raw logs that lie next to the archive that holds them have none: unpacking changes no dataset.
    """
    packed = {path.parent.name for path in folder.glob(f"*/{archive.NAME}")}
    files = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return sorted(
        folder / file for file in files
        if file.as_posix() not in LEFT_OUT
        and not any(part.startswith(".") for part in file.parts)
        and not (len(file.parts) > 2 and file.parts[0] in packed)
    )  # fmt: skip


def digest(path: Path) -> str:
    """Return a file's SHA-256, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def text(folder: Path) -> str:
    """Return the file's lines, a checksum and a name from the folder on each."""
    return "".join(f"{digest(p)}  {p.relative_to(folder).as_posix()}\n" for p in listed(folder))


def wrong(folder: Path) -> Iterator[tuple[str, str]]:
    """Return each file that is not as the folder's checksums say, and how; none without them."""
    file = folder / NAME
    if not file.is_file():
        return
    known = {}
    for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
        checksum, separator, name = line.partition("  ")
        if not separator or len(checksum) != 64:
            yield NAME, f"line {number} is not a checksum"
            continue
        known[name] = checksum
    there = {path.relative_to(folder).as_posix(): path for path in listed(folder)}
    for name in sorted(known.keys() - there.keys()):
        yield name, "it is gone"
    for name in sorted(there.keys() - known.keys()):
        yield name, "it has no checksum"
    for name in sorted(known.keys() & there.keys()):
        if digest(there[name]) != known[name]:
            yield name, "its checksum is another"
