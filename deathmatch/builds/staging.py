"""A new build in a folder of its own, which replaces the present build whole or not at all.

What a build makes holds the path of its folder: the scripts of a virtual environment, wrappers,
Cargo's notes. So the new folder starts as a copy of the present one, with its downloads, and stands
in its place while the commands run, in a mount namespace that nobody else sees.
"""

import contextlib
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


@contextlib.contextmanager
def folder(out: Path, keep: bool) -> Iterator[Path]:
    """Give a new folder next to `out`, a copy of it if `keep`; what is left of it goes at the end.

    A server is built once at a time: another build waits. Raises UserError if the disk is full.
    """
    PLACE.mkdir(parents=True, exist_ok=True)
    new = PLACE / out.name
    with (PLACE / f"{out.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # What a build left that was interrupted, also amid its `swap`.
        if _old(out).exists() and not out.exists():
            _old(out).rename(out)
        for left in (new, _old(out)):
            remove(left)
        out.mkdir(parents=True, exist_ok=True)
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
    """Put the folder `new` at `out`, in place of what was there."""
    old = _old(out)
    out.rename(old)
    new.rename(out)
    remove(old)


def _old(out: Path) -> Path:
    return PLACE / f"{out.name}.old"


def remove(path: Path) -> None:
    """Remove a folder, if there is one, with folders that forbid it, as Go's module cache does."""
    if not path.exists():
        return
    for place, _, _ in os.walk(path):
        os.chmod(place, 0o700)
    shutil.rmtree(path)
