"""Datasets that commands write, each for one question, with files like those of any dataset."""

import json
from collections.abc import Mapping, Sequence

from deathmatch.errors import UserError
from deathmatch.plan import files, paths
from deathmatch.plan.dataset import ExperimentPlan
from deathmatch.plan.paths import ROOT

MODEL = "tour"
"""The dataset with the settings that commands do not choose."""

Keys = Mapping[str, object]
"""TOML keys and their values."""


def model(name: str) -> ExperimentPlan:
    """Return the plan of an experiment in MODEL; UserError if it has none."""
    plan = files.dataset(MODEL).experiments.get(name)
    if plan is None:
        raise UserError(
            f"the dataset {MODEL!r} has no rates for {name!r}",
            "--experiment",
            "choose another one",
        )
    return plan


def check_name(name: str, replaced: str = "") -> None:
    """Raise UserError if the name is not valid for a dataset, or taken.

    A dataset whose file has the remark `replaced` may be overwritten.
    """
    if not paths.usable("dataset", name):
        what = f"{name!r} cannot be the name of a dataset"
        raise UserError(what, "option --name", paths.ALLOWED["dataset"])
    file = paths.path_of("dataset", name)
    if file.exists() and not (replaced and replaced in file.read_text()):
        raise UserError(
            f"there is another dataset called {name!r}", str(file.relative_to(ROOT)),
            "choose another name with --name, or remove this file and the dataset's folder in "
            "data/",
        )  # fmt: skip


def write(name: str, content: str) -> None:
    """Write the file of a dataset."""
    file = paths.path_of("dataset", name)
    file.parent.mkdir(exist_ok=True)
    file.write_text(content)


def text(head: Keys, experiments: Mapping[str, tuple[Keys, Sequence[Keys]]]) -> str:
    """Return the text of a dataset's file, of its own keys, and steps and grids by experiment."""
    parts = [_lines(head)]
    for name, (steps, grids) in experiments.items():
        parts.append(f"\n[experiments.{name}]\n{_lines(steps)}")
        parts += [f"\n[[experiments.{name}.grids]]\n{_lines(grid)}" for grid in grids]
    return "".join(parts)


def _lines(keys: Keys) -> str:
    return "".join(f"{key} = {_value(value)}\n" for key, value in keys.items())


def _value(value: object) -> str:
    """Return a value in TOML: all but tables are written as in JSON."""
    if isinstance(value, Mapping):
        inner = ", ".join(f"{key} = {_value(part)}" for key, part in value.items())
        return f"{{ {inner} }}"
    if isinstance(value, float):
        # 2 rather than 2.0, as a person writes it.
        return f"{value:g}"
    return json.dumps(value, ensure_ascii=False)
