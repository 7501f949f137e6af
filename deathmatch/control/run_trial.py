"""Run one trial: `./shell deathmatch trial data/<dataset>/<experiment>/<server>/<variant>/<n>`.

Checks what the trial needs, builds what is not built, runs `measure.trial` in a sandbox, and says
in one line how it ended. Status 1 means that the trial itself could not be run; UNMEASURED that its
server could not be measured. That is a result too, with status 0 by `--any-outcome`, for Snakemake.
"""

import argparse
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from deathmatch.control import outcome, progress, untracked
from deathmatch.data import records
from deathmatch.errors import UserError
from deathmatch.hosts import (
    clients,
    host,
    namespaces,
    sandbox,
    server_build,
    testbed,
    toolchain,
)
from deathmatch.load import registry
from deathmatch.plan import files, matrix
from deathmatch.plan import testbed as plan
from deathmatch.plan.root import ROOT
from deathmatch.plan.trial import Trial

Build = Callable[[plan.Testbed, Mapping[str, str | int]], testbed.Testbed]

LEAST_FREE_BYTES = 200_000_000
# Exit status; 2 is that of a command line that cannot be read.
UNMEASURED = 3


def main(given: argparse.Namespace) -> int:
    """Run the trial named on the command line; return the exit status."""
    os.chdir(ROOT)
    trial = matrix.find(given.trial.rstrip("/"))
    bed = files.testbed(trial.testbed(given.testbed))
    if given.inside:
        _measure(trial, bed, namespaces.build)
        return 0
    _check_disk(trial.path)
    untracked.make_folders(trial.dataset)
    sandbox.die_with_owner()
    # Here, as a build may download and the sandbox has no network.
    server_build.built(trial.server)
    _build_clients(trial.experiment.name)
    clients.check([trial.experiment.name])
    _check_tools(trial, given.testbed)
    _warn_of_one_cpu()
    words = [sys.executable, "-m", "deathmatch", "trial", "--inside", "--testbed", given.testbed]
    status = sandbox.run([*words, str(trial.path)])
    if status != 0:
        return status
    record = records.read(trial.path / "trial.json")
    print(f"[trial] {outcome.line(record, trial.path)}", file=sys.stderr)
    return 0 if given.any_outcome or outcome.measured(record) else UNMEASURED


def _measure(trial: Trial, bed: plan.Testbed, build: Build) -> None:
    # Only here, as what measures loads slowly.
    from deathmatch.measure import trial as steps

    hosts = build(bed, trial.spec()["sysctl"])
    try:
        steps.run(trial, hosts)
    finally:
        hosts.end()


def _warn_of_one_cpu() -> None:
    cpus = host.Local().affinity()
    if len(cpus) == 1:
        note = testbed.shared_note({"server": cpus, "client": cpus})
        print(f"[trial] this machine gives us one CPU: {note}", file=sys.stderr)


def _build_clients(experiment: str) -> None:
    """Build the load generators that servers' builds make; UserError if such a build fails.

    What an earlier build left is another program, which must not be measured with.
    """
    for server in sorted(clients.builders(experiment)):
        made = server_build.built(files.server(server))
        if not made["ok"]:
            needed = clients.needed(experiment)
            name = next(each for each in needed if registry.client(each).built_by == server)
            where = f"experiment {experiment!r}"
            raise clients.failure(name, "could not be built", made["log"], where)


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
        others = progress.measured(matrix.possible(trial.dataset), bed)
    except UserError:
        # Another server's file may be broken meanwhile: this trial is measured all the same.
        return
    records = [(str(other.path), record) for other, record in others.items() if other != trial]
    now = server_build.on_this_machine([trial.server]) if records else []
    toolchain.check(trial.dataset, [*records, *now])
