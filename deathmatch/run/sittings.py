"""A dataset's sittings: their estimated times, their progress, and the checks before a run."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from deathmatch.builds import clients, tool_differences
from deathmatch.data import inventory, sittings, table_files
from deathmatch.errors import UserError, as_typed
from deathmatch.hosts import hardware
from deathmatch.plan import files, matrix
from deathmatch.plan.dataset import Sitting
from deathmatch.plan.selection import Choice
from deathmatch.plan.trial import Trial
from deathmatch.run import progress

MOST_H = 2
SET_UP_S = 300  # the first `./shell` on a new machine
# Per MB of archive and tables: xz packs the raw logs at its slowest setting.
ARCHIVE_S_PER_MB = 20
HEADER = ("sitting", "experiment", "rounds", "trials", "hours", "MB", "state")


@dataclass(frozen=True)
class Planned:
    """A sitting with its trials and estimates.

    `hours` include builds, set-up and archiving; `megabytes` are those of archive and tables, None
    if no trial of its experiment was measured.
    """

    sitting: Sitting
    trials: tuple[Trial, ...]
    hours: float
    megabytes: float | None

    def row(self, attempt: sittings.Attempt | None) -> tuple[str, ...]:
        """Return its row in the table of a dry run; `attempt` is the last one, if there was one."""
        there = sum(inventory.of_trial(trial).exists() for trial in self.trials)
        state = f"not measured, has {there} trials" if there else "not measured"
        held = sorted({trial.n for trial in self.trials})
        whole = len(held) > 1 and held[-1] - held[0] == len(held) - 1
        rounds = f"{held[0]}-{held[-1]}" if whole else ",".join(map(str, held))
        return (
            self.sitting.name, self.sitting.experiment, rounds,
            str(len(self.trials)), f"{self.hours:.1f}",
            "?" if self.megabytes is None else f"{self.megabytes:.1f}", str(attempt or state),
        )  # fmt: skip


def planned(dataset: str) -> list[Planned]:
    """Return the sittings of a dataset in their order."""
    spec, every, found = files.dataset(dataset), matrix.trials(dataset), []
    for sitting in spec.sittings:
        own = tuple(t for t in every if spec.sitting_of(t.experiment.name, t.n) == sitting.name)
        each_bytes = table_files.bytes_per_trial(sitting.experiment)
        megabytes = None if each_bytes is None else len(own) * each_bytes / 1e6
        builders = clients.builders(sitting.experiment)
        servers = {trial.server.name for trial in own}.union(builders)
        took_s = SET_UP_S + progress.builds_s(map(files.server, servers))
        took_s += sum(map(progress.seconds, own)) + ARCHIVE_S_PER_MB * (megabytes or 0)
        found.append(Planned(sitting, own, took_s / 3600, megabytes))
    return found


def table(dataset: str) -> str:
    """Return a text table of the dataset's sittings, below HEADER."""
    latest = sittings.latest(dataset)
    rows = [HEADER, *(one.row(latest.get(one.sitting.name)) for one in planned(dataset))]
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def check(dataset: str, chosen: Choice, due: Collection[Trial], only_paper: bool) -> None:
    """Raise UserError for a sitting that takes longer than MOST_H, and for three kinds of run.

    These are: a paper before all sittings are measured; a sitting that is already measured; a
    sitting of an experiment whose earlier trials are not here, as its tables and archive would lack
    them.
    """
    spec, latest = files.dataset(dataset), sittings.latest(dataset)
    if spec.frozen or not spec.sittings:
        return
    for place, one in enumerate(planned(dataset)):
        if one.hours > MOST_H:
            what = f"the sitting {one.sitting.name} takes about {one.hours:.1f} h with builds, "
            what += f"set-up and archiving, and the limit is {MOST_H} h"
            remedy = "move some of its rounds to another sitting"
            raise files.mistake("dataset", dataset, ["sittings", place], what, remedy)
    if only_paper:
        return sittings.check_complete(dataset)
    accepted = sittings.accepted(dataset)
    if not due and (known := accepted.intersection(chosen.sittings or ())):
        what = "; ".join(f"the sitting {name} is {latest[name]}" for name in sorted(known))
        remedy = as_typed(f"deathmatch sitting {dataset} {min(known)} --refuse WHY")
        raise UserError(what, f"data/{dataset}", f"to repeat one: {remedy}")
    experiments = list({trial.experiment.name for trial in due})
    for trial in matrix.trials(dataset, experiments=experiments) if accepted and due else ():
        name = spec.sitting_of(trial.experiment.name, trial.n)
        if name in accepted and not inventory.of_trial(trial).exists():
            what = f"the sitting {name} is measured, but this trial of it is missing"
            remedy = as_typed(f"deathmatch unpack {dataset}")
            raise UserError(what, str(trial.path), f"unpack it: {remedy}")


def check_machine(dataset: str, records: Sequence[tuple[str, dict]]) -> None:
    """Raise UserError if a round has trials of two kinds of machine, or would after this run.

    A record is (where, trial), as `tool_differences.entry` returns it.
    """
    for key, places in hardware.differences(records):
        old = next((where for where in places.values() if where.startswith("data/")), "")
        again = f"rm -r {old.rsplit('/', 3)[0]}/*/*/{Path(old).name}"
        ways = [
            "A round has one kind of machine. Continue on the first one",
            f"measure it again: {again}",
        ]
        if others := _untouched(dataset, records):
            typed = as_typed(f"snakemake --config dataset={dataset} sitting={others[0]}")
            ways.append(f"measure other rounds: {typed}")
        if hardware.on_cluster():
            keys = "slurm_partition or constraint in profiles/slurm/config.yaml"
            ways.append(f"select one kind for the rule `trial`: {keys}")
        remedy = ";\n  or ".join(ways)
        raise tool_differences.mixed(dataset, "kinds of machine", key, places, remedy)


def _untouched(dataset: str, records: Sequence[tuple[str, dict]]) -> list[str]:
    """Return the sittings of which no trial is measured."""
    spec = files.dataset(dataset)
    begun = {
        spec.sitting_of(record["experiment"], record["n"])
        for where, record in records if where.startswith("data/")
    }  # fmt: skip
    begun |= sittings.accepted(dataset)
    return [sitting.name for sitting in spec.sittings if sitting.name not in begun]
