"""How much memory a server may use, so that one that takes all does not end the machine.

By the memory controller of cgroups, which kills; where none can be made, as for an ordinary user,
by looking at what its processes hold (`Memory.watch`), several times a second. Either way the
server is what the kernel kills first if the whole machine has none left (proc(5), oom_score_adj).
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
    """A limit in force; without `limit_bytes` there is none. `group` is that of a cgroup."""

    limit_bytes: int | None = None
    group: Group | None = None
    # The group is also another controller's, which removes it.
    shared: bool = False
    refused: str = ""
    # How often `watch` saw more than the limit.
    caught: int = field(default=0)

    @property
    def breach(self) -> str:
        """The message about a server that used more."""
        return f"out of memory under the testbed's limit of {self.limit_bytes / 1e9:.3g} GB"

    @property
    def watched(self) -> bool:
        """Whether the limit holds only by `watch`."""
        return self.limit_bytes is not None and self.group is None

    def prefix(self) -> list[str]:
        """Return the words before a command that make it and its children members."""
        if self.limit_bytes is None:
            return []
        joined = [self.group.joining()] if self.group and not self.shared else []
        return cgroup.prefix(_FIRST, *joined)

    def breaches(self) -> int:
        """Return how many processes were killed so far for what was beyond the limit."""
        if not self.group:
            return self.caught
        events = {1: "memory.oom_control", 2: "memory.events"}[self.group.version]
        return self.group.counts(events).get("oom_kill", 0)

    def watch(self, host: Host, pids: Callable[[], list[int]]) -> None:
        """Kill the server's processes if they hold more than the limit; some milliseconds.

        Shared pages count in each process that has them (RSS); only where that is too much, which
        is cheap to know, they are shared out (PSS).
        """
        running = pids()
        if sum(host.usage(pid)["rss_bytes"] for pid in running) <= self.limit_bytes:
            return
        if (host.pss_bytes(running) or 0) > self.limit_bytes:
            self.caught += 1
            host.kill(running, 0)

    def record(self) -> dict:
        """Return the record for trial.json: the limit, what enforces it, the largest use.

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
        if self.group and not self.shared:
            self.group.remove()
        self.group = None


def apply(host: Host, side: Side, group: Group | None = None) -> Memory:
    """Limit the server's memory as its side says; `group` is the cgroup of its CPU quota, if any.

    `memory_share` is of the host's memory.
    """
    if side.memory_share is None:
        return Memory()
    limit_bytes = int(side.memory_share * hardware.memory_bytes(host.read))
    settings = {1: {"memory.limit_in_bytes": limit_bytes}, 2: {"memory.max": limit_bytes}}
    if group and group.also("memory", settings):
        return _without_swap(Memory(limit_bytes, group, shared=True))
    try:
        return _without_swap(Memory(limit_bytes, cgroup.make(host, "memory", settings)))
    except cgroup.Refused as error:
        return Memory(limit_bytes, refused=str(error))


def _without_swap(made: Memory) -> Memory:
    """Keep what is beyond the limit from being swapped out, where the kernel counts swap."""
    swap = {1: ("memory.memsw.limit_in_bytes", made.limit_bytes), 2: ("memory.swap.max", 0)}
    made.group.write_known(*swap[made.group.version])
    return made


class Guard:
    """A thread that looks after the server's memory until the `with` block ends, if it must.

    `pids` returns the pids of the server's processes on `host` at that moment.
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
