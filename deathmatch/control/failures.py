"""Tell of servers that could not be measured: `./shell deathmatch failures DATASET [--retry]`.

Their rows are in every table with the reason; this is for whoever can mend them. With `--retry`
their records go, and their failed builds, so that the next run tries them again.
"""

import argparse
import shutil
import sys

from deathmatch.data import records
from deathmatch.hosts import server_build
from deathmatch.plan import matrix
from deathmatch.plan.trial import Trial

UNMEASURED = ("not built", "did not start", "answers wrongly")


def main(given: argparse.Namespace) -> int:
    """Print each server and variant that could not be measured; return 1 if there is one."""
    if given.retry:
        print(f"to be tried again: {', '.join(forget(given.dataset)) or 'none'}")
        return 0
    found = problems(given.dataset)
    for name, (trials, outcome, reason) in found.items():
        print(
            f"deathmatch: servers/{name}: {outcome}, in {trials} trials:\n"
            + "".join(f"    {line}\n" for line in reason.splitlines()[-8:])
            + f"  mend servers/{name} and run again; or to try it again unchanged:"
            f" snakemake retry --config dataset={given.dataset}, then run again",
            file=sys.stderr,
        )
    return 1 if found else 0


def problems(dataset: str) -> dict[str, tuple[int, str, str]]:
    """Return {server: (trials that failed, outcome, reason)} of the first failure of each."""
    found: dict[str, tuple[int, str, str]] = {}
    for _, record in _unmeasured(dataset):
        before = found.get(record["server"], (0, record["outcome"], record["reason"]))
        found[record["server"]] = (before[0] + 1, *before[1:])
    return found


def forget(dataset: str) -> list[str]:
    """Remove the trials that could not be measured and the failed builds; return the servers."""
    names = set()
    for trial, record in _unmeasured(dataset):
        shutil.rmtree(trial.path)
        names.add(trial.server.name)
        if record["outcome"] == "not built":
            (server_build.build_dir(trial.server.name) / "build.json").unlink(missing_ok=True)
    return sorted(names)


def _unmeasured(dataset: str) -> list[tuple[Trial, dict]]:
    trials = sorted(matrix.trials(dataset), key=lambda trial: trial.path)
    found = [
        (trial, records.read(trial.path / "trial.json"))
        for trial in trials
        if (trial.path / "trial.json").exists()
    ]
    return [(trial, record) for trial, record in found if record["outcome"] in UNMEASURED]
