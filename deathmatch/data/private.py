"""Which files of a dataset tell where, or by whom, they were made."""

import getpass
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from deathmatch.plan.root import ROOT

# Names of machines and users that tell nothing.
COMMON = {"debian", "localhost", "nixos", "nobody", "root", "ubuntu", "user"}
HOMES = r"(?:/home/[\w.-]+|/root|/Users/[\w.-]+)/"


def findings(folder: Path) -> Iterator[tuple[str, str]]:
    """Return files that tell where or by whom they were made; binary tables are read as text."""
    names = {socket.gethostname(), getpass.getuser()} - COMMON
    words = [rf"\b{re.escape(name)}\b" for name in sorted(names) if len(name) > 3]
    pattern = re.compile("|".join([HOMES, re.escape(f"{ROOT}/"), *words]))
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        if named := pattern.search(_text(path)):
            yield str(path), named[0]


def _text(path: Path) -> str:
    if path.suffix != ".parquet":
        return path.read_text(errors="replace")
    try:
        frame = pl.read_parquet(path)
    except pl.exceptions.PolarsError:
        # The check of its table reports that it cannot be read.
        return ""
    return "\n".join(text for column in frame.select(pl.col(pl.String)) for text in
                     column.drop_nulls().unique().sort())  # fmt: skip
