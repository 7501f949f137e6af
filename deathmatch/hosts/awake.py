"""Keep the CPUs of a virtual machine awake while it measures.

An idle virtual CPU halts, and its hypervisor may take milliseconds to run it again: the client
sends late, the server answers late, and the wait is counted as stolen. The kernel's parameter
idle=poll prevents that, but needs a reboot. Here a process spins on each CPU in a cgroup of the
idle class, and any other process preempts it at once (cpu.idle in cgroup-v2 of the kernel's
documentation; SCHED_IDLE in sched(7)).
"""

import contextlib
import subprocess
from collections.abc import Collection, Iterator, Mapping

from deathmatch.agent import children, kernel
from deathmatch.hosts import cgroup
from deathmatch.hosts.host import Host

_SETTINGS = {version: {"cpu.idle": 1} for version in (1, 2)}
# With this niceness the kernel counts their time as `nice`.
_SPIN = ["nice", "-n", "19", "sh", "-c", "while :; do :; done"]


class Awake:
    """The spinning processes, by CPU; without any, `refused` has the reason."""

    def __init__(self, spinning: Mapping[int, subprocess.Popen], refused: str = ""):
        self._pids = {cpu: process.pid for cpu, process in spinning.items()}
        self._refused = refused
        self._spent_us: dict[int, int] = {}

    def record(self) -> dict:
        """Return the record for trial.json."""
        return {"cpus": sorted(self._pids)} | ({"refused": self._refused} if self._refused else {})

    def count_as_idle(self, counts: dict[str, int], cpus: Collection[int]) -> None:
        """Count the time spent spinning as idle in counts of `agent.kernel.machine`, not as nice.

        `cpus` are those of the server.
        """
        if not self._pids:
            return
        for cpu, pid in self._pids.items():
            # A process that was killed keeps its last count.
            with contextlib.suppress(OSError):
                self._spent_us[cpu] = kernel.cpu_ns(pid) // 1000
        for part, own in (("cpu", self._spent_us), ("server_cpus", cpus)):
            used_us = sum(self._spent_us.get(cpu, 0) for cpu in own)
            counts[f"{part}_idle_us"] += used_us
            # The kernel samples it at ticks, while the processes' time is exact.
            counts[f"{part}_nice_us"] = 0


ASLEEP = Awake({})
"""No CPU is kept awake."""


@contextlib.contextmanager
def kept(host: Host, cpus: Collection[int], wanted: bool = True) -> Iterator[Awake]:
    """Keep these CPUs of this machine awake during the block; `host` makes the cgroup.

    Without a cgroup none is, since such a process could take half of a CPU from a server of another
    session.
    """
    try:
        if not wanted:
            raise cgroup.Refused("the testbed has several machines")
        group = cgroup.make(host, "cpu", _SETTINGS)
    except cgroup.Refused as error:
        yield Awake({}, f"{error}")
        return
    spinning = {}
    try:
        for cpu in cpus:
            words = [*group.prefix(), *children.pinned(_SPIN, [cpu])]
            spinning[cpu] = subprocess.Popen(words, stdin=subprocess.DEVNULL)
        yield Awake(spinning)
    finally:
        for process in spinning.values():
            process.kill()
        for process in spinning.values():
            process.wait()
        group.remove()
