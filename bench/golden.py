#!/usr/bin/env python3
"""Compare a checkout with an earlier commit: tables made again from raw logs, ledger, paper.

    ./shell python bench/golden.py write GOLDEN.json        in a checkout of the earlier commit
    ./shell python bench/golden.py compare GOLDEN.json      in this one; exits 1 if they differ

Tables are made again from their raw logs and compared with those of the earlier commit.
`--tables [DATASET ...]`, `--ledger` and `--paper` choose parts; default: all. It compares columns
of tables, claims of the ledger, and the numbers of each section of the paper in `paper/reference/`,
in their order. The script will be removed with the last issue of the round that it guards.
"""

import argparse
import hashlib
import json
import re
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path

import polars as pl

sys.path.insert(0, str(Path.cwd()))
PARTS = ("tables", "ledger", "paper")


def committed(datasets: list[str]) -> dict[str, str]:
    """Return a hash of each column of each committed table that has raw logs."""
    made = {}
    for file in sorted(Path("data").glob("*/*/raw.tar.xz")):
        dataset, experiment = file.parts[1:3]
        if not datasets or dataset in datasets:
            found = sorted(file.parent.glob("*.parquet"))
            frames = {path.stem: pl.read_parquet(path) for path in found}
            made |= columns(f"{dataset}/{experiment}", frames)
    return made


def columns(where: str, frames: dict[str, pl.DataFrame]) -> dict[str, str]:
    """Return a hash of each column of tables, with rows sorted by trial."""
    ordered = {
        name: frame.sort("server", "variant", "n", maintain_order=True)
        for name, frame in frames.items()
        if len(frame)
    }
    return {
        f"{where}/{name}/{column}": hashed(frame[column])
        for name, frame in ordered.items()
        for column in frame.columns
    }


def tables(datasets: list[str]) -> dict[str, str]:
    """Return a hash of each column of each table, made again from the committed raw logs."""
    from deathmatch.data import archive, tidy

    made = {}
    for file in sorted(Path("data").glob(f"*/*/{archive.NAME}")):
        dataset, experiment = file.parts[1:3]
        if datasets and dataset not in datasets:
            continue
        print(f"tables of {dataset}/{experiment}", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory() as aside:
            folder = Path(aside, dataset, experiment)
            archive.unpack(file, folder)
            frames = tidy.frames(experiment, sorted(folder.glob("*/*/*/trial.json")))
        made |= columns(f"{dataset}/{experiment}", frames)
    return made


def hashed(column: pl.Series) -> str:
    """Return a digest of a column's values, floats to the last bit; "null" if all are null."""
    if column.null_count() == len(column):
        return "null"
    text = "\n".join(map(repr, column.to_list()))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def ledger() -> dict[str, list]:
    """Return both verdicts on each claim of `reference`, with their numbers."""
    from deathmatch.analysis import claims
    from deathmatch.analysis import ledger as frames

    columns = ["dataset", *(f"{when}{name}" for when in ("then", "now")
               for name in ("", "_effect", "_low", "_high", "_trials", "_fragile"))]  # fmt: skip
    frame = frames.frame(claims.ledger("reference"))
    return {row["claim"]: [row[name] for name in columns] for row in frame.to_dicts()}


class Sections(HTMLParser):
    """The visible text of a page, by the identifier of the heading above it."""

    def __init__(self):
        super().__init__()
        self.text: dict[str, list[str]] = {}
        self.section, self.hidden = "", 0

    def handle_starttag(self, tag, attrs):
        """Begin a section at a heading; skip elements that are not text."""
        if tag in ("script", "style", "svg"):
            self.hidden += 1
        if re.fullmatch("h[1-6]", tag) and dict(attrs).get("id"):
            self.section = dict(attrs)["id"]

    def handle_endtag(self, tag):
        """End a skipped element."""
        if tag in ("script", "style", "svg"):
            self.hidden -= 1

    def handle_data(self, data):
        """Keep text."""
        if not self.hidden:
            self.text.setdefault(self.section, []).append(data)


def paper() -> dict[str, list[str]]:
    """Return the numbers of each section of the committed paper, in their order."""
    page = Sections()
    page.feed(Path("paper/reference/deathmatch.html").read_text())
    numbers = re.compile(r"[-−]?\d(?:[\d.,]|[   ](?=\d{3}))*")
    return {key: numbers.findall(" ".join(text)) for key, text in page.text.items()}


def differences(old: dict, new: dict) -> list[str]:
    """Return a line for each part that differs; a new column may be null."""
    lines = [f"{key}: gone" for key in old if key not in new]
    lines += [f"{key}: new" for key in new if key not in old and new[key] != "null"]
    changed = [key for key in old if key in new and old[key] != new[key]]
    return lines + [f"{key}: {shown(old[key], new[key])}" for key in changed]


def shown(old, new) -> str:
    """Return the difference of two values; for lists, only of the members that differ."""
    if not isinstance(old, list) or len(old) != len(new):
        return f"{str(old)[:150]} -> {str(new)[:150]}"
    return ", ".join(f"{a} -> {b}" for a, b in zip(old, new) if a != b)[:300]


def main() -> int:
    """Write or compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("do", choices=("write", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--tables", nargs="*", metavar="DATASET")
    parser.add_argument("--ledger", action="store_true")
    parser.add_argument("--paper", action="store_true")
    given = parser.parse_args()
    chosen = {"tables": given.tables is not None, "ledger": given.ledger, "paper": given.paper}
    wanted = [part for part in PARTS if chosen[part]] or list(PARTS)
    read = committed if given.do == "write" else tables
    make = {"tables": lambda: read(given.tables or []), "ledger": ledger, "paper": paper}
    made = {part: json.loads(json.dumps(make[part]())) for part in wanted}
    if given.do == "write":
        given.file.write_text(json.dumps(made))
        return 0
    old = json.loads(given.file.read_text())
    if given.tables:
        only = tuple(f"{name}/" for name in given.tables)
        old["tables"] = {k: v for k, v in old["tables"].items() if k.startswith(only)}
    found = [f"{part} {line}" for part in wanted for line in differences(old[part], made[part])]
    print("\n".join(found) or "no difference")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
