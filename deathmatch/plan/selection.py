"""Which trials of a dataset a command is about: `servers=` and `experiments=` of Snakemake.

A command of its own takes the same as `--servers` and `--experiments`, so that it knows what the
run knew.
"""

import argparse
from dataclasses import dataclass

from deathmatch.plan import matrix, nothing
from deathmatch.plan.settings import Chosen
from deathmatch.plan.trial import Trial


@dataclass(frozen=True)
class Choice:
    """The names of servers and of experiments; None for all of the dataset's."""

    servers: tuple[str, ...] | None = None
    experiments: tuple[str, ...] | None = None

    @property
    def whole(self) -> bool:
        """Whether nothing is left out."""
        return self.servers is None and self.experiments is None

    def trials(self, dataset: str) -> list[Trial]:
        """Return the dataset's trials of this choice; UserError if there is none."""
        chosen = matrix.trials(dataset, _list(self.servers), _list(self.experiments))
        if not chosen:
            raise nothing.reason(dataset, self.servers, self.experiments)
        return chosen

    @property
    def settings(self) -> list[str]:
        """The words that choose the same with `snakemake --config`."""
        chosen = {"servers": self.servers, "experiments": self.experiments}
        return [f"{key}={','.join(names)}" for key, names in chosen.items() if names is not None]

    @property
    def options(self) -> list[str]:
        """The words that choose the same with `python -m deathmatch COMMAND`."""
        return [f"--{setting}" for setting in self.settings]


def parse(servers: Chosen, experiments: Chosen) -> Choice:
    """Return the choice that two settings make: "all", a list, or names joined by commas."""
    return Choice(_names(servers), _names(experiments))


def given(values: argparse.Namespace) -> Choice:
    """Return the choice that the command line made."""
    return parse(values.servers, values.experiments)


def _names(chosen: Chosen) -> tuple[str, ...] | None:
    if chosen == "all":
        return None
    names = chosen.split(",") if isinstance(chosen, str) else chosen
    return tuple(name.strip() for name in names if name.strip())


def _list(names: tuple[str, ...] | None) -> list[str] | None:
    return None if names is None else list(names)
