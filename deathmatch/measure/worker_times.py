"""What each worker of a server did: the CPU time of its threads, of however many processes."""

import contextlib
from collections.abc import Mapping

from deathmatch.hosts.host import Host

SEEN = 0.01
"""The share of a server's CPU time from which on a thread's is recorded."""


def threads(host: Host) -> dict[int, int]:
    """Return the process of each thread of all that runs on a server's host, by the thread's id."""
    found = {}
    for pid in host.processes():
        with contextlib.suppress(OSError):
            found |= dict.fromkeys(host.threads(pid), pid)
    return found


def cpu_ns(host: Host) -> dict[int, int]:
    """Return the CPU time of each thread of a server's host so far, by the thread's id.

    As the scheduler counts it (/proc/PID/task/TID/schedstat); about 0.1 ms a thread.
    """
    times = {}
    for thread, pid in threads(host).items():
        with contextlib.suppress(OSError):
            times[thread] = int(host.read(f"/proc/{pid}/task/{thread}/schedstat").split()[0])
    return times


def used_us(before: Mapping[int, int], after: Mapping[int, int]) -> list[int]:
    """Return the CPU time of each thread that worked, most first; of others there is nothing."""
    spent = [(ns - before.get(thread, 0)) // 1000 for thread, ns in after.items()]
    total = sum(spent)
    return sorted((us for us in spent if us >= SEEN * total and us > 0), reverse=True)
