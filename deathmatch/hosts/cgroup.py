"""Groups of processes whose CPU or memory the kernel limits: cgroups of version 1 and 2.

A group is a folder; it exists until it is removed, or until a later trial finds it empty. A trial
locks the group that it makes: a locked group is in use even while it has no member.
See cgroup-v1/cpuacct, cgroup-v1/memory and cgroup-v2 of the kernel's documentation.
"""

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deathmatch.errors import UserError
from deathmatch.hosts.host import Host

_PREFIX = "deathmatch-"
_ATTEMPTS = 5

# {version: {file name: value}}, to be written into a group's files.
Settings = Mapping[int, Mapping[str, object]]


class Refused(Exception):
    """No group can be made here; the text has the reasons."""


# A killed process is a member until it is reaped.
_REMOVE = """
tries=0
until rmdir "$1"; do
  tries=$((tries + 1)); [ $tries -lt 40 ] || exit 1; sleep 0.05
done
"""


def _pairs(values: Mapping[str, object]) -> list[str]:
    return [str(part) for pair in values.items() for part in pair]


@dataclass(frozen=True)
class Group:
    """A group on a host: its folder there, and its version."""

    host: Host
    folder: Path
    version: int

    def write_known(self, file: str, value: object) -> None:
        """Write a value into one of its files, if the kernel has the file."""
        script = 'test ! -e "$1" || echo "$2" >"$1"'
        self.host.run("sh", "-ec", script, "sh", str(self.folder / file), str(value))

    def read(self, file: str) -> str:
        """Return the text of one of its files, "" if the kernel lacks the file."""
        try:
            return self.host.read(str(self.folder / file))
        except OSError:
            return ""

    def counts(self, file: str) -> dict[str, int]:
        """Return {name: number} of a file with one of each on a line."""
        return {name: int(value) for name, value in map(str.split, self.read(file).splitlines())}

    def joining(self) -> str:
        """Return the shell command by which a process becomes its member."""
        return f"echo $$ > {shlex.quote(f'{self.folder}/cgroup.procs')}"

    def prefix(self) -> list[str]:
        """Return the words before a command that add its process to the group."""
        return prefix(self.joining())

    def remove(self) -> None:
        """Remove it; its members must have ended.

        UserError if they have not, after two seconds.
        """
        self.host.run("sh", "-c", _REMOVE, "sh", str(self.folder))


def prefix(*scripts: str) -> list[str]:
    """Return the words before a command that make its process run these shell commands first."""
    return ["sh", "-c", " && ".join([*scripts, 'exec "$@"']), "sh"] if scripts else []


def parents(mounts: str, own: str, controller: str) -> list[tuple[int, Path]]:
    """Return where a group with that controller may be made: (version, folder), the best first.

    `mounts` and `own` are the texts of /proc/self/mounts and /proc/self/cgroup (cgroups(7)). The
    process's own group comes first, then those above it: a group of version 2 that has members
    takes no child with a controller.
    """
    places = []
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
                places += [(version, folder) for folder in (here, *above)]
    return sorted(places, key=lambda parent: parent[0])


def make(host: Host, controller: str, settings: Settings) -> Group:
    """Return a new group with these settings; raise Refused if it cannot be made.

    With the controller "" it is a group of version 2 without a controller.
    """
    tried = []
    own, mounts = host.read("/proc/self/cgroup"), host.read("/proc/self/mounts")
    places = parents(mounts, own, controller)
    for number, parent in places:
        group = parent / f"{_PREFIX}{os.getpid()}-{os.urandom(4).hex()}"
        words = [str(parent), _PREFIX, str(group), controller if number == 2 else ""]
        try:
            _made(host, words)
            host.run("sh", "-ec", _SET, "sh", str(group), *_pairs(settings[number]))
            return Group(host, group, number)
        except UserError as error:
            tried.append(error.what.rpartition("failed: ")[2])
    raise Refused("; ".join(tried) or f"no cgroup with a {controller} controller")


def _made(host: Host, words: list[str]) -> None:
    """Make a group and lock it; try again if another trial has removed it before the lock."""
    for _ in range(_ATTEMPTS):
        host.run("sh", "-ec", _MAKE, "sh", *words)
        if host.hold(words[2]):
            return
    raise UserError(f"{words[2]} failed: it was removed by another trial, {_ATTEMPTS} times")


# Groups that killed trials left are removed first, except those with a lock or members.
_MAKE = """
for left in "$1/$2"*; do
  test ! -d "$left" || flock --nonblock "$left" rmdir "$left" 2>/dev/null || :
done
test -z "$4" || echo "+$4" >"$1/cgroup.subtree_control"
mkdir "$3"
"""
_SET = """
group=$1
shift
while [ $# -gt 0 ]; do echo "$2" >"$group/$1" || { rmdir "$group"; exit 1; }; shift 2; done
"""
