"""The server's CPU time, counted by a cgroup, so that it includes processes that have ended.

If no cgroup can be made, as for an ordinary user, the agent adds the times of ended children
(`agent.kernel.ended_children_ns`). See cgroup-v1/cpuacct and cgroup-v2 of the kernel.
"""

from dataclasses import dataclass

from deathmatch.hosts import cgroup
from deathmatch.hosts.cgroup import Group
from deathmatch.hosts.host import Host

_ALONE = ("cpuacct",)
_FILES = {1: "cpuacct.usage", 2: "cpu.stat"}


@dataclass
class Accounting:
    """The cgroup that counts the server's CPU time; without one, `refused` has the reason."""

    group: Group | None = None
    # Another controller owns the group: the server joins and removes it there.
    shared: bool = False
    refused: str = "none was asked for"

    @property
    def file(self) -> str:
        """The path on the host of the group's file with its CPU time; "" without a group."""
        return str(self.group.folder / _FILES[self.group.version]) if self.group else ""

    def prefix(self) -> list[str]:
        """Return the words before a command that add its process to the group."""
        return self.group.prefix() if self.group and not self.shared else []

    def record(self) -> dict[str, str]:
        """Return the record for trial.json."""
        if self.group:
            return {"by": f"a cgroup of version {self.group.version}"}
        return {"by": f"processes and their ended children; no cgroup: {self.refused}"}

    def end(self) -> None:
        """Remove the group; its members must have ended."""
        if self.group and not self.shared:
            self.group.remove()
        self.group = None


def apply(host: Host, *others: Group | None) -> Accounting:
    """Count the server's CPU time; `others` are the cgroups that the server joins anyway.

    One of them is used if it can count: a process has one group of version 2, and one in each
    hierarchy of version 1, and cpu and cpuacct often share a hierarchy.
    """
    for group in filter(None, others):
        if group.read(_FILES[group.version]):
            return Accounting(group, shared=True)
    refused = []
    # Every group of version 2 counts without a controller. If cpu and cpuacct share a hierarchy of
    # version 1, a group would change how the server is scheduled.
    for controller in ("", *(() if _one_hierarchy(host.read("/proc/self/mounts")) else _ALONE)):
        try:
            return Accounting(cgroup.make(host, controller, {1: {}, 2: {}}))
        except cgroup.Refused as error:
            refused.append(str(error))
    return Accounting(refused="; ".join(refused))


def _one_hierarchy(mounts: str) -> bool:
    """Return whether cpu and cpuacct share a hierarchy, given the text of /proc/self/mounts."""
    options = (line.split()[3].split(",") for line in mounts.splitlines())
    return any({"cpu", "cpuacct"} <= set(each) for each in options)
