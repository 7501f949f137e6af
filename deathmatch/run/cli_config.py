"""Check what `config/config.yaml` and `snakemake --config` ask for."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import yaml

from deathmatch.errors import UserError, suggestions
from deathmatch.plan import files, paths, selection, validation_errors
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

    Raises UserError for a wrong `also` or `decided_by`, for a sitting that is too long or already
    measured, and for a paper without trials or before all sittings are measured.
    """
    _check_also(asked.dataset)
    _check_decided_by(asked.dataset)
    study = Study(
        dataset=asked.dataset,
        testbed=asked.testbed,
        choice=selection.given(asked),
        only_paper=only_paper,
    )
    run_sittings.check(study.dataset, study.choice, study.trials, only_paper)
    if study.frozen:
        _check_tables(study)
        _check_others_are_there(study.dataset)
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
    lacking = [table for table in study.own_tables if not Path(table).is_file()]
    if lacking:
        what = f"it lacks {len(lacking)} of the tables that its paper needs, such as {lacking[0]}"
    if lacking or not study.measured:
        remedy = "restore them from git, or choose another dataset"
        raise UserError(what, f"data/{study.dataset}", remedy)


def _check_others_are_there(dataset: str) -> None:
    """Raise UserError if data/ lacks a dataset that a frozen one names; its paper would change."""
    spec = files.dataset(dataset)
    for key in ("also", "decided_by"):
        for name in getattr(spec, key):
            if not Path("data", name).is_dir():
                what = f"data/{name} is missing, and the paper would change without it"
                remedy = f"restore it: git checkout -- data/{name}"
                raise files.mistake("dataset", dataset, (key,), what, remedy)


def _check_also(dataset: str) -> None:
    """Raise UserError unless the datasets exist, and each experiment is in only one of them.

    The searches of an experiment may come from a second dataset, if the first has none.
    """
    spec = files.dataset(dataset)
    holders = dict.fromkeys(spec.experiments, dataset)
    searched = {name for name, plan in spec.experiments.items() if plan.search}
    for name in spec.also:
        _check_other(dataset, "also", name)
        for experiment, plan in files.dataset(name).experiments.items():
            if experiment in holders and (not plan.search or experiment in searched):
                what = f"the experiment {experiment} is both in {holders[experiment]} and in {name}"
                remedy = "remove it from one of them, or choose another dataset"
                raise files.mistake("dataset", dataset, ("also",), what, remedy)
            holders.setdefault(experiment, name)
            if plan.search:
                searched.add(experiment)


def _check_decided_by(dataset: str) -> None:
    """Raise UserError unless each dataset that decides claims of this one is measured."""
    for name in files.dataset(dataset).decided_by:
        _check_other(dataset, "decided_by", name)
        if not files.dataset(name).frozen:
            what = f"the dataset {name} is not frozen, so its verdicts could change"
            remedy = "measure it, and set `frozen = true` in its file"
            raise files.mistake("dataset", dataset, ("decided_by",), what, remedy)


def _check_other(dataset: str, key: str, name: str) -> None:
    """Raise UserError unless the name under a dataset's key is another dataset."""
    others = [known for known in files.names("dataset") if known != dataset]
    if name not in others:
        what = f"there is no other dataset {name[: paths.LONGEST]!r}"
        raise files.mistake("dataset", dataset, (key,), what, suggestions(name, others))


def _check_known(kind: str, names: Iterable[str], key: str) -> None:
    for name in names:
        try:
            files.load(kind, name)
        except UserError as error:
            where = error.where or f"{WHERE}, key {key}"
            raise UserError(error.what, where, error.remedy) from None
