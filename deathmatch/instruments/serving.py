"""A server under load, for the instruments that measure one: start it, offer a rate, stop it."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from deathmatch.builds import clients, server_build
from deathmatch.builds.clone import Clone, on
from deathmatch.errors import UserError
from deathmatch.hosts import netns_testbed, packets
from deathmatch.measure import steps
from deathmatch.measure.context import Context, prepare
from deathmatch.plan import files
from deathmatch.plan.spec import Level
from deathmatch.plan.trial import Trial

# The testbed and the dataset that have every server.
TESTBED, DATASET = "netns", "tour"


def built(kind: str, server: str, experiment: str) -> str:
    """Return the version of a server; UserError if it or the experiment's client is not built."""
    record = server_build.built(files.server(server))
    if not record["ok"]:
        raise UserError(f"server {server!r} is not built", record["log"])
    Clone().clients(clients.needed(experiment), f"`deathmatch {kind}`")
    return record["version"]


@contextlib.contextmanager
def serving(
    trial: Trial, out: Path, values: Mapping[str, Level] | None = None, mode: str = packets.PLAIN
) -> Iterator[Context]:
    """Yield a trial's server, started on namespaces of its own; both end with the block.

    `values` replace placeholders of the server's command, `mode` says to whom the kernel charges
    its work on packets. UserError if the server does not start.
    """
    bed = netns_testbed.build(files.testbed(TESTBED), trial.spec()["sysctl"], on)
    try:
        packets.charge(bed, mode)
        context = prepare(trial, trial.spec(), bed, out)
        context = replace(context, values=context.values | dict(values or {}))
        try:
            running, problem = steps.start_holding(context)
            if problem:
                what = f"server {trial.server.name!r} did not start: {problem}"
                raise UserError(f"{what}\n{running.tail()}")
            yield context
            steps.stop(context, running)
        finally:
            context.end()
    finally:
        bed.end()


def cpu_ns(context: Context) -> int:
    """Return the CPU time that the server's processes have used, those that ended included.

    UserError if nothing can count it.
    """
    cpus, group = context.cpus["server"], context.accounting.file
    used_ns = context.server.sample(cpus=cpus, group=group)["usage"]["cpu_ns"]
    if used_ns is None:
        raise UserError(
            f"server {context.trial.server.name!r} ignores the ends of its children, so that "
            "their CPU time is counted nowhere",
            remedy="run as root, so that a cgroup counts it",
        )
    return used_ns
