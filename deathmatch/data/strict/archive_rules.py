"""Rules about the files as they are handed on: checksums, archives, no names of a machine."""

from collections.abc import Iterator

from deathmatch.checks.rule import Finding, Rules
from deathmatch.data import checksums, private
from deathmatch.data.strict.evidence import Evidence
from deathmatch.data.strict.rule import DATA

ARCHIVE = Rules()


@ARCHIVE.add(
    "DM-CHECKSUMS", "reject", DATA,
    "get the dataset again; or, if the change was meant, remove checksums.sha256 and certify again",
)  # fmt: skip
def files_have_their_checksums(evidence: Evidence) -> Iterator[Finding]:
    """Where the dataset has checksums, each file has its own, and each is there."""
    for name, what in checksums.wrong(evidence.folder):
        yield Finding(what, f"{evidence.named}/{name}")


@ARCHIVE.add("DM-ARCHIVE", "reject", DATA, "pack it again: snakemake archive")
def archives_are_whole(evidence: Evidence) -> Iterator[Finding]:
    """An experiment's archive can be unpacked, and holds what its folders hold."""
    for experiment, what in evidence.packed.items():
        yield Finding(what, f"{evidence.named}/{experiment}/raw.tar.xz")


@ARCHIVE.add("DM-PRIVATE", "reject", DATA, "take it out, and pack again")
def nothing_private(evidence: Evidence) -> Iterator[Finding]:
    """No file names somebody's machine, user or folder."""
    for where, what in private.findings(evidence.folder):
        yield Finding(what, where)
    # An archive's own text is compressed: its trials are unpacked to another folder.
    for trial in evidence.trials:
        if not trial.folder.is_relative_to(evidence.folder):
            for where, what in private.findings(trial.folder):
                yield Finding(what, f"{trial.where}/{where.rpartition('/')[2]}")
