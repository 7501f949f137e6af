"""One sample of what the kernel has counted of a host, taken by the host itself."""

import time
from collections.abc import Iterable, Sequence
from typing import Any

from deathmatch.agent import diag, kernel

# The share of a CPU that counting the SYN queue may take.
_SYN_QUEUE_SHARE = 0.02
# The same of reading how processes share their pages, which holds up what maps memory.
_PSS_SHARE = 0.01


class Sampling:
    """Takes samples as cheaply as possible."""

    def __init__(self) -> None:
        self._syn_queue_due = 0.0
        self._pss_due = 0.0

    def take(
        self, pids: Iterable[int], port: int | None = None, cpus: Sequence[int] | None = None,
        group: str = "", settled: bool = False,
    ) -> dict[str, Any]:  # fmt: skip
        """Return {"at_ns", "counters", "usage"}, with `port` "queues", with `cpus` "machine".

        They are the instant of this host's monotonic clock; `kernel.counters`; the sum of
        `kernel.usage` over the processes; the accept queue's length and limit, summed over the
        listeners of the port, and the SYN queue's length, None where asking so soon would disturb
        the trial; `kernel.machine`.

        With `cpus`, the processes are a server's. "cpu_ns" then has that of processes that ended
        too: of the cgroup whose file `group` is (`kernel.group_cpu_ns`), or without one, of
        children; None if it is unknown. "pss_bytes" is their memory, None where asking so soon
        would disturb the trial and it has not `settled`.
        """
        pids = list(pids)
        taken: dict[str, Any] = {"at_ns": time.monotonic_ns(), "counters": kernel.counters()}
        used = [kernel.usage(pid) for pid in pids]
        taken["usage"] = {what: sum(process[what] for process in used) for what in kernel.USED}
        if port is not None:
            listeners = diag.listeners(port)
            queues = [
                sum(listener.waiting for listener in listeners),
                sum(listener.limit for listener in listeners),
            ]
            taken["queues"] = [*queues, self._syn_queue(port)]
        if cpus is not None:
            taken["machine"] = kernel.machine(cpus)
            taken["usage"]["cpu_ns"] = _cpu_ns(taken["usage"]["cpu_ns"], pids, group)
            taken["usage"]["pss_bytes"] = self._pss(pids, settled)
        return taken

    def _pss(self, pids: Sequence[int], settled: bool) -> int | None:
        began = time.monotonic()
        if began < self._pss_due and not settled:
            return None
        shared_out = kernel.pss_bytes(pids)
        ended = time.monotonic()
        self._pss_due = ended + (ended - began) / _PSS_SHARE
        return shared_out

    def _syn_queue(self, port: int) -> int | None:
        """Return the SYN queue's length, or None.

        The kernel walks through every connection for it: 10,000 take some milliseconds.
        """
        began = time.monotonic()
        if began < self._syn_queue_due:
            return None
        waiting = diag.count(diag.SYN_RECEIVED, port)
        ended = time.monotonic()
        self._syn_queue_due = ended + (ended - began) / _SYN_QUEUE_SHARE
        return waiting


def _cpu_ns(living_ns: int, pids: Sequence[int], group: str) -> int | None:
    """Return the CPU time of processes and of those that ended; None if it is unknown."""
    if group:
        return kernel.group_cpu_ns(group)
    ended = [kernel.ended_children_ns(pid) for pid in pids]
    return None if None in ended else living_ns + sum(ended)
