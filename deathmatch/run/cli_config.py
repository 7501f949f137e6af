"""What one call of Snakemake asks for: its command line, and `config/config.yaml` checked."""

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from deathmatch.errors import UserError
from deathmatch.plan import files, paths, selection, validation_errors
from deathmatch.plan.settings import Settings
from deathmatch.run.study import Study

WHERE = "config/config.yaml or --config"
COMMITTED = "reference"  # the dataset that git holds, with its figures and its paper


def only_paper(words: list[str]) -> bool:
    """Return whether the command line asks for the paper and nothing else: it measures nothing.

    `words` are the command line's, since Snakemake knows its targets only once it has read the
    Snakefile.
    """
    return "paper" in words and "all" not in words


def committed() -> bool:
    """Return whether git's own dataset is here, the one whose paper `snakemake paper` makes."""
    return any(Path("data", COMMITTED).glob("*/points.parquet"))


def dry_run(words: list[str]) -> bool:
    """Return whether the command line asks what would be done: -n, --dry-run, or -n among others.

    As above, Snakemake itself knows only once it has read the Snakefile.
    """
    return any(re.fullmatch(r"--dry-?run|-[a-zA-Z]*n[a-zA-Z]*", word) for word in words)


def study(given: dict, only_paper: bool = False) -> Study:
    """Check Snakemake's `config` and return the study it asks for.

    With `only_paper`, of what is measured by now. Raises UserError for an unknown key, for a
    dataset, testbed, server, experiment or comparison that does not exist, and for a paper of
    nothing.
    """
    # YAML reads `compare:` alone as nothing, and null, the name of a server, too.
    if given.get("compare") is None and "compare" in given:
        given = given | {"compare": ""}
    if isinstance(given.get("servers"), list):
        given = given | {"servers": ["null" if name is None else name for name in given["servers"]]}
    validation_errors.check(Settings, given, WHERE)
    settings = Settings.model_validate(given)
    study = Study(
        dataset=settings.dataset,
        testbed=settings.testbed,
        compare=settings.compare,
        choice=selection.of(settings.servers, settings.experiments),
        only_paper=only_paper,
    )
    _known("dataset", [study.dataset], "dataset")
    _known("testbed", [study.testbed], "testbed")
    _known("server", study.choice.servers or (), "servers")
    _known("experiment", study.choice.experiments or (), "experiments")
    if not study.frozen and not study.measured:
        raise UserError(
            f"none of its {len(study.choice.trials(study.dataset))} trials is measured, and "
            "`snakemake paper` only makes the paper of what is",
            where=f"data/{study.dataset}",
            remedy=f"measure it, and get the paper too: {study.command}",
        )
    return replace(study, compare=_compared(study.dataset, study.compare))


def _compared(dataset: str, asked: str) -> str:
    """Return the dataset to compare with: the one asked for, else the dataset's own; "" for none.

    Raises UserError if that is the dataset itself, or has no tables.
    """
    found = asked or files.dataset(dataset).compare
    named = paths.usable("dataset", found)
    there = named and any(Path("data", found).glob("*/points.parquet"))
    if not found or (there and found != dataset):
        return found
    if found == dataset:
        what, remedy = f"{found!r} is the dataset itself", "name another dataset, or none"
    else:
        what = f"data/{found[: paths.LONGEST]} holds no tables to compare with"
        remedy = (
            f"measure it first: snakemake --config dataset={found}"
            if named
            else "name a folder of data/, as it stands there"
        )
    if asked:
        raise UserError(what, where=f"{WHERE}, key compare", remedy=remedy)
    raise files.mistake("dataset", dataset, ("compare",), what, remedy)


def _known(kind: str, names: Iterable[str], key: str) -> None:
    for name in names:
        try:
            files.load(kind, name)
        except UserError as error:
            where = error.where or f"{WHERE}, key {key}"
            raise UserError(error.what, where, error.remedy) from None
