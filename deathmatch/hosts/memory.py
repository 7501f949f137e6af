"""A limit of the server's memory, so that a server that takes all of it does not stop the machine.

The memory controller of cgroups enforces it by killing. If no cgroup can be made, as for an
ordinary user, the server's memory is read several times a second (`Memory.watch`). In both cases
the kernel kills the server first if the machine has no memory left (proc(5), oom_score_adj).
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from deathmatch.hosts import cgroup, hardware
from deathmatch.hosts.cgroup import Group
from deathmatch.hosts.host import Host
from deathmatch.plan.testbed import Side

_INTERVAL_S = 0.3
_FIRST = "echo 1000 > /proc/self/oom_score_adj"


@dataclass
class Memory:
    """A limit in force; none without `limit_bytes`. `group` is the cgroup that enforces it."""

    limit_bytes: int | None = None
    group: Group | None = None
    refused: str = ""
    # How often `watch` killed the server.
    caught: int = field(default=0)

    @property
    def breach(self) -> str:
        """The message about a server that exceeded the limit."""
        return f"out of memory under the testbed's limit of {self.limit_bytes / 1e9:.3g} GB"

    @property
    def watched(self) -> bool:
        """Whether only `watch` enforces the limit."""
        return self.limit_bytes is not None and self.group is None

    def prefix(self) -> list[str]:
        """Return the words before a command that put its process under the limit."""
        if self.limit_bytes is None:
            return []
        joined = [self.group.joining()] if self.group else []
        return cgroup.prefix(_FIRST, *joined)

    def breaches(self) -> int:
        """Return how many times so far processes were killed for exceeding the limit."""
        if not self.group:
            return self.caught
        events = {1: "memory.oom_control", 2: "memory.events"}[self.group.version]
        return self.group.counts(events).get("oom_kill", 0)

    def watch(self, host: Host, pids: Callable[[], list[int]]) -> None:
        """Kill the server's processes if they exceed the limit; takes some milliseconds.

        First the resident sets are added up (RSS), which is cheap but counts shared pages several
        times; only if that exceeds the limit, the proportional shares are read (PSS).
        """
        running = pids()
        if sum(host.usage(pid)["rss_bytes"] for pid in running) <= self.limit_bytes:
            return
        if (host.pss_bytes(running) or 0) > self.limit_bytes:
            self.caught += 1
            host.kill(running, 0)

    def record(self) -> dict:
        """Return the record for trial.json: the limit, what enforces it, and the largest use.

        `peak_bytes` is None where the kernel does not count it.
        """
        if self.limit_bytes is None:
            return {}
        if self.group is None:
            by, peak_bytes = f"looking several times a second; no cgroup: {self.refused}", None
        else:
            number = self.group.version
            peak = self.group.read({1: "memory.max_usage_in_bytes", 2: "memory.peak"}[number])
            by = f"a cgroup of version {number}"
            peak_bytes = int(peak) if peak else None
        return {
            "limit_bytes": self.limit_bytes, "by": by, "breaches": self.breaches(),
            "peak_bytes": peak_bytes,
        }  # fmt: skip

    def end(self) -> None:
        """Remove the group; its members must have ended."""
        if self.group:
            self.group.remove()
        self.group = None


def apply(host: Host, side: Side) -> Memory:
    """Limit the server's memory as its side says; `memory_share` is of the host's memory."""
    if side.memory_share is None:
        return Memory()
    limit_bytes = int(side.memory_share * hardware.memory_bytes(host.read))
    settings = {1: {"memory.limit_in_bytes": limit_bytes}, 2: {"memory.max": limit_bytes}}
    try:
        return _without_swap(Memory(limit_bytes, cgroup.make(host, "memory", settings)))
    except cgroup.Refused as error:
        return Memory(limit_bytes, refused=str(error))


def _without_swap(made: Memory) -> Memory:
    """Keep the server's memory from being swapped out, if the kernel counts swap."""
    swap = {1: ("memory.memsw.limit_in_bytes", made.limit_bytes), 2: ("memory.swap.max", 0)}
    made.group.write_known(*swap[made.group.version])
    return made


class Guard:
    """A thread that calls `Memory.watch` until the `with` block ends, if no cgroup has the limit.

    `pids` returns the pids of the server's processes on `host`.
    """

    def __init__(self, memory: Memory, host: Host, pids: Callable[[], list[int]]) -> None:
        self._memory, self._host, self._pids = memory, host, pids
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._loop, daemon=True)

    def __enter__(self) -> "Guard":
        if self._memory.watched:
            self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _loop(self) -> None:
        while not self._ended.wait(_INTERVAL_S):
            self._memory.watch(self._host, self._pids)
