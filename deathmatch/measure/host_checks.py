"""A trial's hosts: what can change between two trials is recorded, what would spoil it ends it.

The whole machine is looked at by `./shell deathmatch audit`; here, only what takes no time: no
other load is waited for, no link measured.
"""

import contextlib
import time
from dataclasses import dataclass

from deathmatch.hosts import hardware
from deathmatch.hosts.audit import demand, fact, facts, probe, read, rules
from deathmatch.hosts.host import Host
from deathmatch.measure.context import Context

# The facts about the load that are recorded of the time of the trial.
DURING = {"window_s", "steal_share", "cpu_pressure", "io_pressure", "memory_pressure"}


@dataclass(frozen=True)
class Beginning:
    """What the hosts were like before a trial, and what their kernels had counted."""

    audit: facts.Audit
    counted: dict[str, dict[str, str]]
    began_ns: int


def begin(context: Context) -> Beginning:
    """Look at the hosts before anything of a trial runs.

    Some tens of milliseconds. Raises UserError if what is seen would spoil the trial and the
    testbed does not accept it.
    """
    bed = context.bed.spec
    audit = read.testbed(context.bed, context.cpus, demand.trial_demand(context.spec), whole=False)
    report = rules.ask(audit, bed.accepts)
    if report.by_verdict["refuse"]:
        # The trial ends here, and nothing else ends its hosts.
        context.end()
        raise rules.refusal(report, bed.name)
    return Beginning(audit, {n: _counted(h) for n, h in _hosts(context)}, time.monotonic_ns())


def end(context: Context, beginning: Beginning) -> dict[str, dict]:
    """Return what the hosts were like, by name, and `during` the trial, for its record."""
    window_ns = time.monotonic_ns() - beginning.began_ns
    return {
        name: {
            **({"machine": hardware.describe(host.read)} if context.bed.separate else {}),
            **_changing(beginning.audit.hosts[name]),
            "during": _during(beginning.counted[name], _counted(host), window_ns),
        }
        for name, host in _hosts(context)
    }


def _hosts(context: Context) -> list[tuple[str, Host]]:
    return [(host.name, host) for host in context.bed.hosts]


def _counted(host: Host) -> dict[str, str]:
    """Return the files that count CPU time and pressure, as far as the kernel has them."""
    texts = {}
    for path in probe.COUNTED:
        with contextlib.suppress(OSError):
            texts[path] = host.read(path)
    return texts


def _during(before: dict[str, str], after: dict[str, str], window_ns: int) -> dict:
    counted = {
        "window_ns": window_ns, "tick_hz": 1, "before": before, "after": after, "processes": [],
    }  # fmt: skip
    load = facts.load({"files": {}, "failed": {}, "load": counted})
    return fact.picked(load, DURING)


def _changing(host: facts.Host) -> dict[str, dict]:
    """Return the facts of each part that can change between two trials."""
    parts = {name: fact.changing(part) for name, part in host.parts.items()}
    del parts["load"]
    if governors := parts["processor"]["governors"]:
        # Hundreds of CPUs have few kinds.
        parts["processor"]["governors"] = sorted({*governors.values()})
    return parts
