"""Groups of processes whose CPU or memory the kernel limits: cgroups of version 1 and 2.

A group is a folder; it stays until it is removed, or until a later trial finds it old and empty.
Files of the controllers: cgroup-v1/cpu-acct, cgroup-v1/memory and cgroup-v2 of the kernel.
"""

import contextlib
import os
import time
from collections.abc import Mapping
from pathlib import Path

MOUNTS = Path("/proc/self/mounts")
_PREFIX = "deathmatch-"
_LEFT_S = 3600

# For each version, what is written into which of a group's files.
Settings = Mapping[int, Mapping[str, object]]


class Refused(Exception):
    """No group can be made here; its text says what was tried."""


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


def version(group: Path) -> int:
    """Return of which version a group is."""
    return 2 if (group / "cgroup.controllers").exists() else 1


def make(controller: str, settings: Settings) -> Path:
    """Return a new group with these settings; raises Refused if there can be none."""
    tried = []
    own = Path("/proc/self/cgroup").read_text()
    for number, parent in parents(MOUNTS.read_text(), own, controller):
        group = parent / f"{_PREFIX}{os.getpid()}-{os.urandom(4).hex()}"
        try:
            _remove_old(parent)
            if number == 2:
                (parent / "cgroup.subtree_control").write_text(f"+{controller}")
            group.mkdir()
            write(group, settings[number])
            return group
        except OSError as error:
            tried.append(f"{error.strerror}: {error.filename}")
            with contextlib.suppress(OSError):
                group.rmdir()
    raise Refused("; ".join(tried) or f"no cgroup with a {controller} controller")


def also(group: Path, controller: str, settings: Settings) -> bool:
    """Add another controller to a group, if it is of version 2; return whether it is in force.

    There a process has but one group.
    """
    if version(group) != 2:
        return False
    try:
        (group.parent / "cgroup.subtree_control").write_text(f"+{controller}")
        write(group, settings[2])
    except OSError:
        return False
    return True


def write(group: Path, values: Mapping[str, object]) -> None:
    """Write values into a group's files; OSError if the kernel refuses one."""
    for file, value in values.items():
        (group / file).write_text(str(value))


def counts(file: Path) -> dict[str, int]:
    """Return the counters of a file that has a name and a number on each line."""
    return {name: int(value) for name, value in map(str.split, file.read_text().splitlines())}


def joining(group: Path) -> str:
    """Return the shell command by which a process becomes its member."""
    return f'echo $$ > "{group}/cgroup.procs"'


def remove(group: Path) -> None:
    """Remove a group; its members must have ended."""
    deadline = time.monotonic() + 2
    while True:
        try:
            group.rmdir()
            return
        except OSError:
            # A member that was killed is one until it is reaped.
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _remove_old(parent: Path) -> None:
    for old in parent.glob(f"{_PREFIX}*"):
        # One that is in use has members, but for a moment as its server starts.
        with contextlib.suppress(OSError):
            if time.time() - old.stat().st_mtime > _LEFT_S:
                old.rmdir()
