"""A trial's hosts: what can change between two trials is recorded, what would spoil it refuses it.

The whole machine is looked at by `./shell deathmatch audit`; here, only what takes no time: no
other load is waited for, no link measured.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from deathmatch.hosts import hardware
from deathmatch.hosts.audit import demand, facts, parse, probe, read, rules
from deathmatch.hosts.host import Host
from deathmatch.measure.context import Context

# Of each part of the facts, the fields that can change between two trials.
CHANGING: Mapping[str, tuple[str, ...]] = {
    "processor": ("online", "smt_active", "governors", "turbo"),
    "memory": ("available_bytes", "transparent_huge_pages"),
    "clock": ("source", "synchronised", "error_bound_s"),
    "interface": (
        "name", "kind", "driver", "up", "mtu_bytes", "speed_bit_per_s", "full_duplex",
        "queue_discipline", "offloads", "receive_coalescing_s", "adaptive_coalescing",
    ),
    "limits": tuple(name for name in facts.Limits.model_fields if name != "unknown"),
}  # fmt: skip
DURING = ("window_s", "steal_share", "cpu_pressure", "io_pressure", "memory_pressure")


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
    audit = read.testbed(context.bed, context.cpus, demand.of(context.spec), whole=False)
    if refused := rules.refusing(rules.findings(audit), bed.accepts):
        # Nobody else will: the trial ends here.
        context.end()
        raise rules.refusal(refused, bed.name)
    return Beginning(audit, {n: _counted(h) for n, h in _hosts(context)}, time.monotonic_ns())


def end(context: Context, beginning: Beginning) -> dict[str, dict]:
    """Return what the hosts were like, by name, and `during` the trial, for its record."""
    window_ns = time.monotonic_ns() - beginning.began_ns
    return {
        name: {
            **({"machine": hardware.of(host)} if context.bed.separate else {}),
            **_changing(beginning.audit.hosts[name]),
            "during": _during(beginning.counted[name], _counted(host), window_ns),
        }
        for name, host in _hosts(context)
    }


def _hosts(context: Context) -> list[tuple[str, Host]]:
    return [(one.name, one) for one in context.bed.hosts]


def _counted(host: Host) -> dict[str, str]:
    """Return the files that count CPU time and pressure; one that a kernel lacks is left out."""
    found = {}
    for path in probe.COUNTED:
        try:
            found[path] = host.read(path)
        except OSError:
            continue
    return found


def _during(before: dict[str, str], after: dict[str, str], window_ns: int) -> dict:
    counted = {
        "window_ns": window_ns, "tick_hz": 1, "before": before, "after": after, "processes": [],
    }  # fmt: skip
    load = parse.load({"files": {}, "failed": {}, "load": counted})
    return _picked(load, DURING)


def _changing(host: facts.Host) -> dict[str, dict]:
    parts = {name: _picked(getattr(host, name), fields) for name, fields in CHANGING.items()}
    if governors := parts["processor"]["governors"]:
        # Of hundreds of CPUs, each kind once.
        parts["processor"]["governors"] = sorted({*governors.values()})
    return parts


def _picked(part: facts.Facts, fields: tuple[str, ...]) -> dict:
    """Return some fields of a part, and why the unknown ones of these are."""
    unknown = {name: why for name, why in part.unknown.items() if name in fields}
    return part.model_dump(include={*fields}) | ({"unknown": unknown} if unknown else {})
