"""Whose CPU time is the server's: that of a cgroup, so that processes that ended count too.

Where no cgroup can be made, as for an ordinary user, the agent adds the times of ended children
(`agent.kernel.ended_children_ns`). cgroup-v1/cpuacct and cgroup-v2 of the kernel's documentation.
"""

from dataclasses import dataclass

from deathmatch.hosts import cgroup
from deathmatch.hosts.cgroup import Group
from deathmatch.hosts.host import Host

_ALONE = ("cpuacct",)
_FILES = {1: "cpuacct.usage", 2: "cpu.stat"}


@dataclass
class Accounting:
    """The cgroup that counts the server's CPU time, if there is one; `refused` says why not."""

    group: Group | None = None
    # The group is also another controller's, which the server joins and which removes it.
    shared: bool = False
    refused: str = "none was asked for"

    @property
    def file(self) -> str:
        """The file of the group that has its CPU time, a path of the host; "" without a group."""
        return str(self.group.folder / _FILES[self.group.version]) if self.group else ""

    def prefix(self) -> list[str]:
        """Return the words before a command that make it and its children members."""
        return self.group.prefix() if self.group and not self.shared else []

    def record(self) -> dict[str, str]:
        """Return what trial.json says of it."""
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

    One of them counts too if it can: a process has one group of version 2, and one of each
    hierarchy of version 1, of which cpu and cpuacct often share one.
    """
    for group in filter(None, others):
        if group.read(_FILES[group.version]):
            return Accounting(group, shared=True)
    refused = []
    # Every group of version 2 counts, without a controller. Where cpu and cpuacct are one
    # hierarchy of version 1, a group would change how the server is scheduled.
    for controller in ("", *(() if _one_hierarchy(host.read("/proc/self/mounts")) else _ALONE)):
        try:
            return Accounting(cgroup.make(host, controller, {1: {}, 2: {}}))
        except cgroup.Refused as error:
            refused.append(str(error))
    return Accounting(refused="; ".join(refused))


def _one_hierarchy(mounts: str) -> bool:
    """Return whether groups of cpuacct are groups of cpu too, from /proc/self/mounts."""
    options = (line.split()[3].split(",") for line in mounts.splitlines())
    return any({"cpu", "cpuacct"} <= set(each) for each in options)
