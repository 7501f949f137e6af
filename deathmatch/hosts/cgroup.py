"""Groups of processes whose CPU or memory the kernel limits: cgroups of version 1 and 2.

A group is a folder; it stays until it is removed, or until a later trial finds it old and empty.
Files of the controllers: cgroup-v1/cpu-acct, cgroup-v1/memory and cgroup-v2 of the kernel.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deathmatch.errors import UserError
from deathmatch.hosts.host import Host

_PREFIX = "deathmatch-"
_LEFT_MIN = 60

# For each version, what is written into which of a group's files.
Settings = Mapping[int, Mapping[str, object]]


class Refused(Exception):
    """No group can be made here; its text says what was tried."""


_ALSO = """
parent=$1 group=$2
echo "+$3" >"$parent/cgroup.subtree_control"
shift 3
while [ $# -gt 0 ]; do echo "$2" >"$group/$1"; shift 2; done
"""
# A member that was killed is one until it is reaped.
_REMOVE = """
tries=0
until rmdir "$1"; do tries=$((tries + 1)); [ $tries -lt 40 ] || exit 1; sleep 0.05; done
"""


def _pairs(values: Mapping[str, object]) -> list[str]:
    return [str(part) for pair in values.items() for part in pair]


@dataclass(frozen=True)
class Group:
    """A group of a host: its folder there, and its version."""

    host: Host
    folder: Path
    version: int

    def also(self, controller: str, settings: Settings) -> bool:
        """Add another controller, if it is of version 2; return whether it is in force.

        There a process has but one group.
        """
        if self.version != 2:
            return False
        words = [_ALSO, "sh", str(self.folder.parent), str(self.folder), controller]
        try:
            self.host.run("sh", "-ec", *words, *_pairs(settings[2]))
        except UserError:
            return False
        return True

    def write_known(self, file: str, value: object) -> None:
        """Write a value into one of its files; nothing if the kernel lacks that."""
        script = 'test ! -e "$1" || echo "$2" >"$1"'
        self.host.run("sh", "-ec", script, "sh", str(self.folder / file), str(value))

    def read(self, file: str) -> str:
        """Return the text of one of its files, empty if the kernel lacks that."""
        try:
            return self.host.read(str(self.folder / file))
        except OSError:
            return ""

    def counts(self, file: str) -> dict[str, int]:
        """Return the counters of a file that has a name and a number on each line."""
        return {name: int(value) for name, value in map(str.split, self.read(file).splitlines())}

    def joining(self) -> str:
        """Return the shell command by which a process becomes its member."""
        return f'echo $$ > "{self.folder}/cgroup.procs"'

    def remove(self) -> None:
        """Remove it; its members must have ended. UserError if they have not, after two seconds."""
        self.host.run("sh", "-c", _REMOVE, "sh", str(self.folder))


def parents(mounts: str, own: str, controller: str) -> list[tuple[int, Path]]:
    """Return where a group with that controller may be made: (version, folder), best first.

    From the texts of /proc/self/mounts and /proc/self/cgroup (cgroups(7)): one's own group, then
    those above it, as a group of version 2 that has members takes no child with a controller.
    """
    found = []
    for line in mounts.splitlines():
        _, mount, kind, options, *_ = line.split()
        if kind == "cgroup" and controller in options.split(","):
            version, named = 1, controller
        elif kind == "cgroup2":
            version, named = 2, ""
        else:
            continue
        for entry in own.splitlines():
            _, controllers, path = entry.split(":", 2)
            if named in controllers.split(","):
                here = Path(mount, path.lstrip("/"))
                above = [folder for folder in here.parents if folder.is_relative_to(mount)]
                found += [(version, folder) for folder in (here, *above)]
    return sorted(found, key=lambda one: one[0])


def make(host: Host, controller: str, settings: Settings) -> Group:
    """Return a new group with these settings; raises Refused if there can be none."""
    tried = []
    own, mounts = host.read("/proc/self/cgroup"), host.read("/proc/self/mounts")
    for number, parent in parents(mounts, own, controller):
        group = parent / f"{_PREFIX}{os.getpid()}-{os.urandom(4).hex()}"
        words = [_MAKE, "sh", str(parent), _PREFIX, str(_LEFT_MIN), str(group)]
        words.append(controller if number == 2 else "")
        try:
            host.run("sh", "-ec", *words, *_pairs(settings[number]))
            return Group(host, group, number)
        except UserError as error:
            tried.append(error.what.rpartition("failed: ")[2])
    raise Refused("; ".join(tried) or f"no cgroup with a {controller} controller")


# Of those that a killed trial left, one that is in use has members, but for a moment as its server
# starts.
_MAKE = """
find "$1" -maxdepth 1 -name "$2*" -mmin "+$3" -exec rmdir {} + 2>/dev/null || :
group=$4
test -z "$5" || echo "+$5" >"$1/cgroup.subtree_control"
shift 5
mkdir "$group"
while [ $# -gt 0 ]; do echo "$2" >"$group/$1" || { rmdir "$group"; exit 1; }; shift 2; done
"""
