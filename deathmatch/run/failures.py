"""Tell of servers that could not be measured: `./shell deathmatch failures DATASET`.

Their rows are in every table with the reason; this is for whoever can mend them. With `--retry`
their records go, and their failed builds, so that the next run tries them again.
"""

import argparse
import shutil
import sys
from dataclasses import dataclass

from deathmatch.builds import server_commands
from deathmatch.data import records
from deathmatch.data.inventory import Inventory
from deathmatch.plan import selection
from deathmatch.plan.record import MEASURED, OUTCOMES
from deathmatch.plan.selection import Choice
from deathmatch.plan.trial import Trial
from deathmatch.plan.typed import typed

UNMEASURED = tuple(outcome for outcome in OUTCOMES if outcome not in MEASURED)


@dataclass(frozen=True)
class Failure:
    """Why a server could not be measured: the first of its trials, and how many there are."""

    outcome: str
    reason: str
    folder: str
    trials: int

    @property
    def lines(self) -> list[str]:
        """The reason's lines that say something."""
        return [line for line in self.reason.splitlines() if line.strip()] or ["no reason recorded"]


def main(given: argparse.Namespace) -> int:
    """Print each server and variant that could not be measured; return 1 if there is one."""
    chosen = selection.given(given)
    if given.retry:
        print(f"to be tried again: {', '.join(forget(given.dataset, chosen)) or 'none'}")
        return 0
    found = problems(given.dataset, chosen)
    if found:
        print(told(found, retry(given.dataset, chosen)), file=sys.stderr)
    else:
        print(f"data/{given.dataset}: each server that was tried could be measured")
    return 1 if found else 0


def told(found: dict[str, Failure], again: str) -> str:
    """Return what to say of the `problems`; `again` is the command that forgets them."""
    return "\n".join(
        f"deathmatch: servers/{name}: {failure.outcome}, in {failure.trials} trials:\n"
        + "".join(f"    {line}\n" for line in failure.reason.splitlines()[-8:])
        + f"  mend servers/{name} and run again; or to try it again unchanged: {again}, then"
        " run again"
        for name, failure in found.items()
    )


def retry(dataset: str, chosen: Choice) -> str:
    """Return the command that forgets what could not be measured."""
    return typed(" ".join(["snakemake retry --config", f"dataset={dataset}", *chosen.settings]))


def problems(dataset: str, chosen: Choice) -> dict[str, Failure]:
    """Return the failure of each server that could not be measured, by name."""
    found: dict[str, list[tuple[Trial, dict]]] = {}
    for trial, record in _unmeasured(dataset, chosen):
        found.setdefault(trial.server.name, []).append((trial, record))
    return {
        name: Failure(record["outcome"], record["reason"], str(trial.path), len(failed))
        for name, failed in found.items()
        for trial, record in failed[:1]
    }


def forget(dataset: str, chosen: Choice) -> list[str]:
    """Remove the trials that could not be measured and the failed builds; return the servers."""
    names = set()
    for trial, record in _unmeasured(dataset, chosen):
        shutil.rmtree(trial.path)
        names.add(trial.server.name)
        if record["outcome"] == "not built":
            (server_commands.build_dir(trial.server.name) / "build.json").unlink(missing_ok=True)
    return sorted(names)


def _unmeasured(dataset: str, chosen: Choice) -> list[tuple[Trial, dict]]:
    measured = sorted(Inventory(dataset, chosen).measured.items(), key=lambda one: one[1])
    found = [(trial, records.read(file)) for trial, file in measured]
    return [(trial, record) for trial, record in found if record["outcome"] in UNMEASURED]
