"""Run one trial: `./shell deathmatch trial data/<dataset>/<experiment>/<server>/<variant>/<n>`.

Checks what the trial needs, builds what is not built, runs `measure.trial` in a sandbox. What a
server does, its death included, is a result with status 0; status 1 means that the trial itself
could not be run.
"""

import argparse
import os
import shutil
import sys
from pathlib import Path

from deathmatch.control import progress
from deathmatch.errors import UserError
from deathmatch.hosts import clients, sandbox, server_build, toolchain
from deathmatch.plan import files, matrix
from deathmatch.plan.root import ROOT
from deathmatch.plan.trial import Trial

LEAST_FREE_BYTES = 200_000_000


def main(given: argparse.Namespace) -> int:
    """Run the trial named on the command line; return the exit status."""
    os.chdir(ROOT)
    trial = matrix.find(given.trial.rstrip("/"))
    bed = files.testbed(trial.testbed(given.testbed))
    if given.inside:
        # Only here, as what measures loads slowly.
        from deathmatch.measure import trial as steps

        steps.run(trial, bed)
        return 0
    _check_disk(trial.path)
    sandbox.die_with_owner()
    # Here, as a build may download and the sandbox has no network.
    for name in sorted({trial.server.name, *clients.builders(trial.experiment.name)}):
        server_build.built(files.server(name))
    clients.check([trial.experiment.name])
    _check_tools(trial, given.testbed)
    words = [sys.executable, "-m", "deathmatch", "trial", "--inside", "--testbed", given.testbed]
    return sandbox.run([*words, str(trial.path)])


def _check_disk(path: Path) -> None:
    folder = next(parent for parent in path.parents if parent.exists())
    free = shutil.disk_usage(folder).free
    if free < LEAST_FREE_BYTES:
        raise UserError(
            f"only {free // 1_000_000} MB of disk are left",
            where=str(folder),
            remedy=f"make room for {LEAST_FREE_BYTES // 1_000_000} MB and run again: "
            "finished trials are kept",
        )


def _check_tools(trial: Trial, bed: str) -> None:
    """Raise UserError if the dataset's other trials were measured with other tools."""
    try:
        others = progress.measured(matrix.trials(trial.dataset), bed)
    except UserError:
        # Another server's file may be broken meanwhile: this trial is measured all the same.
        return
    records = [(str(other.path), record) for other, record in others.items() if other != trial]
    now = server_build.on_this_machine([trial.server]) if records else []
    toolchain.check(trial.dataset, [*records, *now])
