"""What files of a dataset must not be: another trial's, broken by a law, changed, or private.

Plain functions from the evidence to findings.
"""

import getpass
import hashlib
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from deathmatch.checks.findings import Finding
from deathmatch.data.laws import LAWS
from deathmatch.data.strict.evidence import KEY, Evidence
from deathmatch.plan.paths import ROOT

CHECKSUMS = "checksums.sha256"
# Names of machines and users that tell nothing.
COMMON = {"debian", "localhost", "nixos", "nobody", "root", "ubuntu", "user"}
HOMES = r"(?:/home/[\w.-]+|/root|/Users/[\w.-]+)/"


def counters(evidence: Evidence) -> Iterator[Finding]:
    """No counter is impossible; points that break another law are marked, and left out."""
    for experiment, points in evidence.points.items():
        for row in points.explode("laws_broken").drop_nulls("laws_broken").iter_rows(named=True):
            law = LAWS.get(row["laws_broken"])
            if law and law.severity in ("reject", "warn"):
                where = evidence.name(experiment, *(row[name] for name in KEY))
                text = f"{law.id} is broken at {row['offered_rate_rps']} req/s: {law.statement}"
                remedy = "find out what counted wrongly, and measure these trials again"
                yield Finding("DM-COUNTERS", law.severity, where, text, remedy)


def only_once(evidence: Evidence) -> Iterator[Finding]:
    """No two trials have the same start on the same server, or a raw log in common."""
    known: dict[object, str] = {}
    for trial in evidence.trials:
        record = trial.record
        names = {client["log"] for offered in trial.offers for client in offered.clients}
        logs = {name: trial.log(name) for name in sorted(names)}
        keys = {name: hashlib.sha256(text.encode()).digest() for name, text in logs.items() if text}
        if trial.is_measured:
            keys["its start"] = record["started_at"], record["server"], record["experiment"]
        for name, key in keys.items():
            first = known.setdefault(key, f"{trial.where}/{name}")
            if first != f"{trial.where}/{name}":
                remedy = "one is a copy of the other: remove it and measure it"
                yield Finding("DM-TWICE", "reject", trial.where, f"{name} is {first}", remedy)


def checksums(evidence: Evidence) -> Iterator[Finding]:
    """Where the dataset has checksums, as sha256sum(1) writes them, each file has its own."""
    file = evidence.folder / CHECKSUMS
    for line in file.read_text(errors="replace").splitlines() if file.is_file() else ():
        checksum, _, name = line.partition("  ")
        listed = evidence.folder / name
        digest = hashlib.sha256(listed.read_bytes()).hexdigest() if listed.is_file() else "gone"
        if digest != checksum:
            text = "it is gone" if digest == "gone" else "its checksum is another"
            remedy = f"get the dataset again; or, if the change was meant, write {CHECKSUMS} again"
            yield Finding("DM-CHECKSUMS", "reject", evidence.name(name), text, remedy)


def nothing_private(evidence: Evidence) -> Iterator[Finding]:
    """No file names somebody's machine, user or folder."""
    names = {socket.gethostname(), getpass.getuser()} - COMMON
    words = [rf"\b{re.escape(name)}\b" for name in sorted(names) if len(name) > 3]
    pattern = re.compile("|".join([HOMES, re.escape(f"{ROOT}/"), *words]))
    # An archive's own text is compressed: its trials are unpacked to another folder.
    folders = {evidence.folder: evidence.name()} | {
        trial.folder: trial.where
        for trial in evidence.trials
        if not trial.folder.is_relative_to(evidence.folder)
    }
    for folder, named in folders.items():
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            if found := pattern.search(_text(path)):
                where = f"{named}/{path.relative_to(folder)}"
                yield Finding(
                    "DM-PRIVATE", "reject", where, found[0], "take it out, and pack again"
                )


def _text(path: Path) -> str:
    if path.suffix != ".parquet":
        return path.read_text(errors="replace")
    try:
        frame = pl.read_parquet(path)
    except pl.exceptions.PolarsError:
        # That it cannot be read is a finding of its own.
        return ""
    strings = frame.select(pl.col(pl.String))
    return "\n".join(text for column in strings for text in column.drop_nulls().unique().sort())
