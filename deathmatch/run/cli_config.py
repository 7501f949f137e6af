"""Check what `config/config.yaml` and `snakemake --config` ask for."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import yaml

from deathmatch.errors import UserError
from deathmatch.plan import files, selection, validation_errors
from deathmatch.plan.selection import Settings
from deathmatch.run import sittings as run_sittings
from deathmatch.run.study import Study

WHERE = "config/config.yaml or --config"
FILE = Path("config/config.yaml")
COMMITTED = "reference"  # the dataset that is in git, with its figures and its paper


def check_file(file: Path = FILE) -> dict:
    """Return the file's content; raise UserError if Snakemake could not read it, or it is empty."""
    back = "fix it, or restore the committed one: git checkout config/config.yaml"
    try:
        value = yaml.safe_load(file.read_text("utf-8-sig"))
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        why = " ".join(str(error).split())
        raise UserError(f"cannot be read: {why}", str(file), back) from None
    if not isinstance(value, dict):
        raise UserError("it holds no keys with values, `key: value`", str(file), back)
    return value


def committed() -> bool:
    """Return whether the dataset of the committed paper is here; `snakemake paper` needs it."""
    return any(Path("data", COMMITTED).glob("*/points.parquet"))


def check_words(words: Sequence[str]) -> None:
    """Raise UserError if a command line has --config twice: Snakemake reads only the last one."""
    if sum(word in ("--config", "-C") or word.startswith("--config=") for word in words) > 1:
        what = "--config is given more than once, and Snakemake reads only the last one"
        raise UserError(what, "command line", "write it once: --config dataset=full servers=yaws")


def settings(given: dict) -> Settings:
    """Check Snakemake's `config` and return it.

    Raises UserError for an unknown key, and for a dataset, testbed, server or experiment that does
    not exist.
    """
    # YAML reads null, the name of a server, as None.
    if isinstance(given.get("servers"), list):
        given = given | {"servers": ["null" if name is None else name for name in given["servers"]]}
    # YAML reads a name of digits as a number.
    given = {key: str(value) if type(value) is int else value for key, value in given.items()}
    asked = validation_errors.validated(
        Settings, given, WHERE, "config/schemas/config.json has every key"
    )
    chosen = selection.given(asked)
    _check_known("dataset", [asked.dataset], "dataset")
    _check_known("testbed", [asked.testbed], "testbed")
    _check_known("server", chosen.servers or (), "servers")
    _check_known("experiment", chosen.experiments or (), "experiments")
    return asked


def study(asked: Settings, only_paper: bool = False) -> Study:
    """Return the requested study; with `only_paper`, the part of it that is measured so far.

    Raises UserError for a sitting that is too long or already measured, and for a paper without
    trials or before all sittings are measured.
    """
    study = Study(
        dataset=asked.dataset,
        testbed=asked.testbed,
        choice=selection.given(asked),
        only_paper=only_paper,
    )
    run_sittings.check(study.dataset, study.choice, study.trials, only_paper)
    if study.frozen:
        _check_tables(study)
    elif not study.measured:
        raise UserError(
            f"none of its {len(study.choice.trials(study.dataset))} trials is measured, and "
            "`snakemake paper` measures nothing",
            where=f"data/{study.dataset}",
            remedy=f"measure it, which also makes the paper: {study.command}",
        )
    return study


def _check_tables(study: Study) -> None:
    """Raise UserError if a frozen dataset lacks tables that its paper needs."""
    what = "it has no tables, and it is only read"
    lacking = [table for table in study.tables() if not Path(table).is_file()]
    if lacking:
        what = f"it lacks {len(lacking)} of the tables that its paper needs, such as {lacking[0]}"
    if lacking or not study.measured:
        remedy = "restore them from git, or choose another dataset"
        raise UserError(what, f"data/{study.dataset}", remedy)


def _check_known(kind: str, names: Iterable[str], key: str) -> None:
    for name in names:
        try:
            files.load(kind, name)
        except UserError as error:
            where = error.where or f"{WHERE}, key {key}"
            raise UserError(error.what, where, error.remedy) from None
