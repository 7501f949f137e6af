"""The records that a dataset's folder has of its planned trials; `data.records` reads them."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from deathmatch.plan import matrix
from deathmatch.plan.selection import Choice
from deathmatch.plan.trial import Trial

RECORD = "trial.json"


def of_trial(trial: Trial, root: Path = Path()) -> Path:
    """Return the file of a trial's record, whether or not it exists."""
    return root / trial.path / RECORD


def recorded(folder: Path, experiment: str = "*") -> list[Path]:
    """Return the records in a dataset's folder, of one experiment or of all, sorted."""
    return sorted(folder.glob(f"{experiment}/*/*/*/{RECORD}"))


@dataclass(frozen=True)
class Inventory:
    """The records of a dataset, and the trials that it plans; paths are relative to `root`."""

    dataset: str
    choice: Choice = field(default_factory=Choice)
    root: Path = Path()

    @property
    def folder(self) -> Path:
        """The dataset's folder."""
        return self.root / "data" / self.dataset

    @cached_property
    def files(self) -> list[Path]:
        """Every record of the chosen experiments in the dataset's folder, sorted."""
        names = self.choice.experiments or ("*",)
        return sorted(file for name in names for file in recorded(self.folder, name))

    @cached_property
    def chosen(self) -> list[Trial]:
        """The chosen trials of the dataset's plan, in the order in which they run."""
        return self.choice.trials(self.dataset)

    @cached_property
    def possible(self) -> dict[Path, Trial]:
        """Every trial that the dataset can hold, also of any named server, by its record's file."""
        trials = matrix.possible(self.dataset, self.choice.experiments)
        return {of_trial(trial, self.root): trial for trial in trials}

    @property
    def measured(self) -> dict[Trial, Path]:
        """The chosen trials that have a record, with its file."""
        there = set(self.files)
        files = ((trial, of_trial(trial, self.root)) for trial in self.chosen)
        return {trial: file for trial, file in files if file in there}

    @property
    def missing(self) -> list[Trial]:
        """The chosen trials that have no record."""
        measured = self.measured
        return [trial for trial in self.chosen if trial not in measured]
