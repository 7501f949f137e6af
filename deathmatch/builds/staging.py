"""A new build in a folder of its own, which replaces the present build whole or not at all.

What a build makes holds the path of its folder: the scripts of a virtual environment, wrappers,
Cargo's notes. So the new folder starts as a copy of the present one, with its downloads, and stands
in its place while the commands run, in a mount namespace that nobody else sees.
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from deathmatch.agent import namespaces
from deathmatch.errors import UserError
from deathmatch.hosts import sandbox
from deathmatch.plan.paths import ROOT

PLACE = ROOT / "build" / "aside"
# linux/fcntl.h and linux/fs.h
AT_FDCWD = -100
RENAME_EXCHANGE = 2
# Errors of a file system or a kernel that cannot exchange two folders.
NO_EXCHANGE = (errno.EINVAL, errno.ENOSYS, errno.EXDEV, errno.ENOTSUP)


@contextlib.contextmanager
def folder(out: Path, keep: bool) -> Iterator[Path]:
    """Give a new folder next to `out`, a copy of it if `keep`; what is left of it goes at the end.

    A server is built once at a time: another build waits. Raises UserError if the disk is full.
    """
    for place in (PLACE, out):
        place.mkdir(parents=True, exist_ok=True)
    new = PLACE / out.name
    with (PLACE / f"{out.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # An interrupted build may have left it.
        remove(new)
        try:
            _copy(out, new) if keep else new.mkdir()
            yield new
        finally:
            remove(new)


def _copy(old: Path, new: Path) -> None:
    done = subprocess.run(
        ["cp", "--archive", "--reflink=auto", str(old), str(new)], capture_output=True, text=True
    )
    if done.returncode != 0:
        raise UserError(
            f"the present build cannot be copied: {done.stderr.strip().splitlines()[-1]}",
            where=str(old.relative_to(ROOT)),
            remedy=f"make room, or remove the present build: rm -r {old.relative_to(ROOT)}",
        )


def run(new: Path, out: Path, words: list[str]) -> int:
    """Run a command to which the folder `new` is at `out`; return its exit status.

    All that it starts ends with it, or with this process. Raises UserError where the kernel forbids
    namespaces.
    """
    script = 'mount --no-mtab --bind "$1" "$2" && shift 2 && exec "$@"'
    prefix = namespaces.words("--map-current-user", "--keep-caps")
    try:
        problem = namespaces.forbidden(prefix)
    except FileNotFoundError as error:
        raise UserError(f"{error.filename} is not installed", remedy="run inside ./shell") from None
    if problem:
        raise sandbox.forbidden(problem)
    # The capabilities that the mount took are not for the build.
    drop = [] if os.geteuid() == 0 else ["setpriv", "--inh-caps=-all", "--ambient-caps=-all", "--"]
    inside = ["sh", "-ec", script, "sh", str(new), str(out), *drop, *words]
    return subprocess.run([*prefix, *inside], cwd=ROOT, stdin=subprocess.DEVNULL).returncode


def swap(new: Path, out: Path) -> None:
    """Put the folder `new` at `out`, and what was there at `new`; at no moment is there neither."""
    libc = ctypes.CDLL(None, use_errno=True)
    words = (AT_FDCWD, os.fsencode(new), AT_FDCWD, os.fsencode(out), RENAME_EXCHANGE)
    if libc.renameat2(*words) == 0:
        return
    if ctypes.get_errno() not in NO_EXCHANGE:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(out))
    old = new.with_name(f"{new.name}.old")
    remove(old)
    out.rename(old)
    new.rename(out)
    old.rename(new)


def remove(path: Path) -> None:
    """Remove a folder, if there is one, with folders that forbid it, as Go's module cache does."""
    if not path.exists():
        return
    for place, _, _ in os.walk(path):
        os.chmod(place, 0o700)
    shutil.rmtree(path)
