"""A new build in a folder of its own, which replaces the present build atomically.

Files of a build contain the path of its folder: the scripts of a virtual environment, wrappers,
Cargo's metadata. So the commands run in a private mount namespace, in which the new folder is
mounted at the path of the present one. It starts as a copy of that, with its downloads.
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
    """Yield a new folder for a build, a copy of `out` if `keep`; remove it at the end.

    It is locked: another build of the server waits. Raises UserError if the disk is full.
    """
    PLACE.mkdir(parents=True, exist_ok=True)
    new = PLACE / out.name
    with (PLACE / f"{out.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Remove what an interrupted build left; it may have been interrupted in `swap`.
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
    """Run a command with the folder `new` mounted at `out`; return its exit status.

    Its children end with it, or with this process. Raises UserError if the kernel forbids
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
    # The mount needs these capabilities, the build does not.
    drop = [] if os.geteuid() == 0 else ["setpriv", "--inh-caps=-all", "--ambient-caps=-all", "--"]
    inside = ["sh", "-ec", script, "sh", str(new), str(out), *drop, *words]
    return subprocess.run([*prefix, *inside], cwd=ROOT, stdin=subprocess.DEVNULL).returncode


def swap(new: Path, out: Path) -> None:
    """Replace the folder `out` by `new`."""
    old = _old(out)
    out.rename(old)
    new.rename(out)
    remove(old)


def _old(out: Path) -> Path:
    return PLACE / f"{out.name}.old"


def remove(path: Path) -> None:
    """Remove a folder if it exists, and its read-only folders, such as Go's module cache."""
    if not path.exists():
        return
    for place, _, _ in os.walk(path):
        os.chmod(place, 0o700)
    shutil.rmtree(path)
