"""Run one trial: `./shell deathmatch trial data/<dataset>/<experiment>/<server>/<variant>/<n>`.

Checks what the trial needs, builds what is not built, runs `measure.trial` in a sandbox, and prints
the outcome in one line. Exit status 1: the trial could not be run. UNMEASURED: its server could not
be measured, which is a result; with `--any-outcome`, as Snakemake runs it, that is status 0.
"""

import argparse
import contextlib
import os
import shutil
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from deathmatch.builds import (
    clients,
    clone,
    server_build,
    tool_differences,
    toolchain,
)
from deathmatch.data import records
from deathmatch.errors import UserError
from deathmatch.hosts import hardware, netns_testbed, sandbox, ssh_testbed, testbed
from deathmatch.measure import trial as measurement
from deathmatch.plan import files, matrix, paths
from deathmatch.plan import testbed as plan
from deathmatch.plan.trial import Trial
from deathmatch.run import checkout, failures, progress, sittings

LEAST_FREE_BYTES = 200_000_000
# Exit status; 2 is that of a wrong command line.
UNMEASURED = 3


def main(given: argparse.Namespace) -> int:
    """Run the trial named on the command line; return the exit status."""
    trial = matrix.find(given.trial.rstrip("/"))
    bed = files.testbed(given.testbed)
    _check_disk(trial.path)
    checkout.make_folders(trial.dataset, names=["data"])
    sandbox.die_with_owner()
    measure = _on_machines if bed.kind == "ssh" else _in_namespaces
    if status := measure(trial, bed, given.testbed):
        return status
    record = records.read(trial.path / "trial.json")
    print(f"[trial] {failures.line(record, trial.path)}", file=sys.stderr)
    # The trial may have changed .gitignore. On other machines, other builds were measured.
    paths.ignored.cache_clear()
    if bed.kind != "ssh" and (changed := server_build.changes(trial.server)):
        warning = f"during the trial, {changed}: the next run measures it again"
        remedy = "if the server writes that, let it write into {build}, or name it in .gitignore"
        print(f"[trial] {warning}; {remedy}", file=sys.stderr)
    return 0 if given.any_outcome or failures.measured(record) else UNMEASURED


def _in_namespaces(trial: Trial, bed: plan.Testbed, default: str) -> int:
    """Measure a trial in a sandbox on this machine; return the exit status.

    `default` is the testbed of the dataset's trials whose factors name no other.
    """
    # Before the sandbox, which has no network: a build may download.
    built = server_build.built(trial.server)
    clone.Clone().clients(*clients.of_trial(trial))
    _check_tools(trial, bed, default, toolchain.harness(), built)
    _warn_of_one_cpu()
    return sandbox.call(
        lambda: _measure(trial, netns_testbed.build(bed, trial.spec()["sysctl"], clone.on))
    )


def _on_machines(trial: Trial, bed: plan.Testbed, default: str) -> int:
    """Measure a trial on the testbed's machines; return the exit status. `default` as above."""
    hosts = ssh_testbed.connect(bed, trial.spec()["sysctl"], clone.on)
    try:
        # All of them build at the same time.
        testbed.together(
            partial(hosts.installations[client.name].clients, *clients.of_trial(trial))
            for client in hosts.clients
        )
        built = hosts.installations[testbed.SERVER].built(trial.server)
        _check_tools(trial, bed, default, hosts.harness(), built)
    except BaseException:
        hosts.end()
        raise
    _measure(trial, hosts)
    return 0


def _measure(trial: Trial, hosts: testbed.Testbed) -> None:
    try:
        measurement.run(trial, hosts)
    finally:
        hosts.end()


def _warn_of_one_cpu() -> None:
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) == 1:
        note = testbed.shared_note({"server": cpus, "client": cpus})
        print(f"[trial] only one CPU may be used here: {note}", file=sys.stderr)


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


def _check_tools(
    trial: Trial, bed: plan.Testbed, default: str, harness: dict, built: dict
) -> None:  # fmt: skip
    """Raise UserError if the experiment's other trials were measured with other tools."""
    try:
        others = comparable(trial, matrix.possible(trial.dataset), default)
    except UserError:
        # Another server's file may be broken; this trial is measured anyway.
        return
    records = [(str(other.path), record) for other, record in others.items()]
    if records:
        where = "this testbed now" if bed.kind == "ssh" else "this machine now"
        names = trial.experiment.name, trial.n, trial.server.name
        machine = None if bed.kind == "ssh" else hardware.describe()
        records.append(tool_differences.entry(where, *names, harness, built["tools"], machine))
        tool_differences.check(trial.dataset, records)
        sittings.check_machine(trial.dataset, records)


def comparable(trial: Trial, possible: Iterable[Trial], default: str) -> dict[Trial, dict]:
    """Return the records of its dataset to compare a trial's tools with, by trial.

    Those of its server and one of another server, preferably of the same round. They suffice: the
    run compared all records before its first trial, and each trial since was compared in this way;
    to read all of them would take longer with each trial. `default` is as in `progress.measured`.
    """
    others = [other for other in possible if other != trial]
    own = [other for other in others if other.server.name == trial.server.name]
    same = progress.measured(own, default)
    own_round = trial.experiment.name, trial.n
    for other in sorted(others, key=lambda other: (other.experiment.name, other.n) != own_round):
        if other.server.name == trial.server.name:
            continue
        # Any other record serves as well as one that cannot be read.
        with contextlib.suppress(UserError):
            if record := progress.measured([other], default):
                return same | record
    return same
