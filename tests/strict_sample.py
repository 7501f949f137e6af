"""Small datasets taken out of the miniature, which strict rules can be asked about.

Their specification is brought to today's plan, so that a server may change after the measurement,
and they get what a virtual machine cannot say of its processor, so that every rule is asked.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from conftest import MINIATURE

from deathmatch.data import archive, inventory, records, tidy
from deathmatch.data.check import Report, asked
from deathmatch.data.strict.evidence import gathered
from deathmatch.plan import files, matrix
from deathmatch.plan.dataset import Dataset
from deathmatch.plan.trial import Trial

HOSTS = {
    name: {"processor": {"governors": ["performance"], "turbo": True, "smt_active": False}}
    for name in ("server", "client")
}


@cache
def planned() -> dict[str, Trial]:
    """Return the trials that the miniature plans, by folder."""
    return {str(trial.path): trial for trial in matrix.trials(MINIATURE.name)}


def unpack(experiment: str, wanted: Callable[[str], bool], to: Path) -> None:
    """Unpack those trials' raw logs of an experiment the path of whose record `wanted` takes."""
    archive.unpack(MINIATURE / experiment / archive.NAME, to / experiment)
    for file in inventory.recorded(to):
        if not wanted(str(file.relative_to(to / experiment))):
            shutil.rmtree(file.parent)


@dataclass
class Sample:
    """A dataset called as the miniature, of one experiment, in a folder of its own."""

    folder: Path
    experiment: str

    @property
    def files(self) -> list[Path]:
        return inventory.recorded(self.folder)

    @property
    def trial(self) -> Path:
        """The folder of its first trial."""
        return self.files[0].parent

    def table(self, name: str) -> Path:
        return self.folder / self.experiment / f"{name}.parquet"

    def tidy(self) -> None:
        """Make the tables of what the raw logs say by now."""
        made = tidy.frames(self.experiment, self.files)
        for table in files.dataset(MINIATURE.name).tables(self.experiment):
            made[table].write_parquet(self.table(table))

    def record(self, change: Callable[[dict], object], folder: Path | None = None) -> None:
        """Change a trial's record; by default, the first one's."""
        file = (folder or self.trial) / inventory.RECORD
        record = json.loads(file.read_text())
        change(record)
        file.write_text(json.dumps(record))

    def today(self) -> None:
        """Give it today's specifications, and hosts that describe their processors in full."""
        for file in self.files:
            record = records.read(file)
            where = str(Path("data", MINIATURE.name) / file.parent.relative_to(self.folder))
            record["spec"] = json.loads(json.dumps(planned()[where].spec()))
            file.write_text(json.dumps(record | {"hosts": HOSTS}))

    def copy(self, to: Path) -> "Sample":
        shutil.copytree(self.folder, to)
        return Sample(to, self.experiment)

    def report(self, dataset: Dataset | None = None) -> Report:
        """Return what all rules say of it: of a dataset that is not frozen, and waives nothing."""
        variants = {
            str(Path("data", MINIATURE.name) / file.parent.parent.relative_to(self.folder))
            for file in self.files
        }
        plan = [
            trial for where, trial in planned().items() if where.rpartition("/")[0] in variants
        ]  # fmt: skip
        dataset = dataset or files.dataset(MINIATURE.name).model_copy(
            update={"frozen": False, "waives": {}}
        )
        with gathered(self.folder, dataset, plan, plan) as evidence:
            return asked(evidence)


def broken(report: Report) -> dict[str, list[str]]:
    """Return what was found, but for notes, by the name of the check."""
    seen: dict[str, list[str]] = {}
    for found in report.findings:
        if found.severity != "note":
            seen.setdefault(found.check, []).append(f"{found.where}: {found.text}")
    return seen
