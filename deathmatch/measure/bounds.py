"""What a server must not change: the CPUs given to it, and the network settings of its host."""

import contextlib
import re

from deathmatch.hosts import network_settings
from deathmatch.hosts.hardware import cpu_numbers
from deathmatch.hosts.host import Host
from deathmatch.hosts.testbed import SERVER
from deathmatch.measure.context import Context

# It changes when any program of the machine makes the kernel load a module.
_OF_MACHINE = "net.ipv4.tcp_available_congestion_control"


def settings(context: Context) -> dict[str, str]:
    """Return the network settings in force on the server's host; takes some 10 ms."""
    host = context.server
    found = host.sysctls(context.bed.spec.server.sysctl) | network_settings.read(host)
    return {key: value for key, value in found.items() if key != _OF_MACHINE}


def left(context: Context) -> str:
    """Return what the server has changed, and what to do about it; "" if nothing."""
    given = context.cpus[SERVER]
    if foreign := sorted(_allowed(context.server) - set(given)):
        return (
            f"it may run on CPU {', '.join(map(str, foreign))}, and was given CPU "
            f"{', '.join(map(str, given))}: let it leave its affinity alone (sched_setaffinity(2), "
            "options that bind workers to CPUs)"
        )
    now, before = settings(context), context.state.settings
    changed = [
        f"{key} was {before[key]!r} before it was started, and is {now.get(key)!r}: let it leave "
        "the kernel's settings alone; the testbed's file and an experiment set them"
        for key in before if now.get(key) != before[key]
    ]  # fmt: skip
    return next(iter(changed), "")


def _allowed(host: Host) -> set[int]:
    """Return the CPUs that any thread on a server's host may use."""
    found: set[int] = set()
    for pid in host.processes():
        # The thread may end meanwhile.
        with contextlib.suppress(OSError):
            for thread in host.threads(pid):
                status = host.read(f"/proc/{pid}/task/{thread}/status")
                found |= {*cpu_numbers(re.search(r"Cpus_allowed_list:\s*(\S+)", status)[1])}
    return found
