"""The user's choice, by `config/config.yaml`, `--config` or options, and the trials it selects."""

import argparse
from collections.abc import Collection
from dataclasses import dataclass

from pydantic import Field

from deathmatch.errors import UserError, suggestions
from deathmatch.plan import files, matrix, paths
from deathmatch.plan.spec import Many, Spec
from deathmatch.plan.trial import Trial

Chosen = str | Many[str]


class Settings(Spec):
    """The settings of snakemake: what it measures and publishes."""

    dataset: str
    """A file in config/datasets/."""
    testbed: str
    """A file in config/testbeds/."""
    servers: Chosen = Field(
        description='"all", a list, or names joined by commas: folders in servers/, each measured '
        "in every experiment of the dataset that it serves."
    )
    experiments: Chosen = Field(
        description='"all", a list, or names joined by commas: files in experiments/.'
    )
    sitting: Chosen = Field(
        "all",
        description='Sittings of the dataset: "all" (those not measured yet), a list, or names '
        "joined by commas.",
    )


@dataclass(frozen=True)
class Choice:
    """The names of servers, experiments and sittings; None for all of the dataset's."""

    servers: tuple[str, ...] | None = None
    experiments: tuple[str, ...] | None = None
    sittings: tuple[str, ...] | None = None

    @property
    def whole(self) -> bool:
        """Whether nothing is left out."""
        return (self.servers, self.experiments, self.sittings) == (None, None, None)

    def trials(self, dataset: str) -> list[Trial]:
        """Return the dataset's trials that are chosen; UserError if there is none."""
        spec = files.dataset(dataset)
        known = [sitting.name for sitting in spec.sittings]
        for name in self.sittings or ():
            if name not in known:
                what = f"dataset {dataset!r} has no sitting {name!r}"
                raise UserError(what, "key sitting", suggestions(name, known) if known else "")
        chosen = [
            trial
            for trial in matrix.trials(dataset, self.servers, self.experiments)
            if self.sittings is None
            or spec.sitting_of(trial.experiment.name, trial.n) in self.sittings
        ]
        if not chosen:
            held = ", ".join(sorted(files.dataset(dataset).experiments)) or "none"
            why = "".join(f"\n    {each}" for each in self.left_out(dataset, []))
            raise UserError(
                f"nothing to measure{why}", f"dataset {dataset!r}", f"its experiments: {held}"
            )
        return chosen

    def left_out(self, dataset: str, measured: Collection[str]) -> list[str]:
        """Return a sentence for each chosen name that is not `measured`."""
        held = sorted(files.dataset(dataset).experiments)
        asked = [name for name in held if self.experiments is None or name in self.experiments]
        absent = [name for name in self.experiments or () if name not in held]
        return [f"dataset {dataset!r} does not have {name}" for name in absent] + [
            _unmeasured(name, asked) for name in self.servers or () if name not in measured
        ]

    @property
    def settings(self) -> list[str]:
        """The arguments of `snakemake --config` that make this choice."""
        chosen = {"servers": self.servers, "experiments": self.experiments}
        chosen |= {"sitting": self.sittings}
        return [f"{key}={','.join(names)}" for key, names in chosen.items() if names is not None]

    @property
    def options(self) -> list[str]:
        """The options of `python -m deathmatch COMMAND` that make this choice."""
        return [f"--{setting}" for setting in self.settings]


def given(values: argparse.Namespace | Settings) -> Choice:
    """Return the choice of settings or of a command line; each value is "all", a list, or "a,b"."""
    return Choice(*map(_names, (values.servers, values.experiments, values.sitting)))


def _names(chosen: Chosen) -> tuple[str, ...] | None:
    if chosen == "all":
        return None
    names = chosen.split(",") if isinstance(chosen, str) else chosen
    return tuple(name.strip() for name in names if name.strip())


def _unmeasured(name: str, experiments: Collection[str]) -> str:
    """Return a sentence on why a named server is measured in none of the experiments."""
    server = files.server(name)
    if not server.runs:
        return f"{paths.folder(name)} cannot run here: {server.not_run}"
    asked, serves = " or ".join(experiments) or "any", ", ".join(server.experiments) or "none"
    return f"{paths.folder(name)} does not serve {asked}; it serves {serves}"
