"""Rules about the files as they are handed on: checksums, archives, no names of a machine."""

from collections.abc import Iterator

from deathmatch.data import checksums, private
from deathmatch.data.strict.evidence import Evidence
from deathmatch.data.strict.rule import DATA, Seen, rule


@rule(
    "DM-CHECKSUMS", DATA, "reject",
    "Where the dataset has checksums, each file has its own, and each is there.",
    "get the dataset again; or, if the change was meant, remove checksums.sha256 and certify again",
)  # fmt: skip
def files_have_their_checksums(evidence: Evidence) -> Iterator[Seen]:
    """Look for files that changed since the dataset was certified."""
    for name, what in checksums.wrong(evidence.folder):
        yield Seen(f"{evidence.named}/{name}", what)


@rule(
    "DM-ARCHIVE", DATA, "reject",
    "An experiment's archive can be unpacked, and holds what its folders hold.",
    "pack it again: snakemake archive",
)  # fmt: skip
def archives_are_whole(evidence: Evidence) -> Iterator[Seen]:
    """Look for archives that are damaged or of other trials."""
    for experiment, what in evidence.packed.items():
        yield Seen(f"{evidence.named}/{experiment}/raw.tar.xz", what)


@rule(
    "DM-PRIVATE", DATA, "reject",
    "No file names somebody's machine, user or folder.", "take it out, and pack again",
)  # fmt: skip
def nothing_private(evidence: Evidence) -> Iterator[Seen]:
    """Look for names and places, in what lies there and in what was unpacked."""
    for where, what in private.found(evidence.folder):
        yield Seen(where, what)
    # An archive's own text is compressed: its trials lie aside.
    for trial in evidence.trials:
        if not trial.folder.is_relative_to(evidence.folder):
            for where, what in private.found(trial.folder):
                yield Seen(f"{trial.where}/{where.rpartition('/')[2]}", what)


RULES = (files_have_their_checksums, archives_are_whole, nothing_private)
