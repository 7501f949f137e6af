"""The folder in which a run works: it can be written to, and one run at a time works in it."""

import fcntl
import os
import socket
from pathlib import Path

from deathmatch.errors import UserError
from deathmatch.hosts import sandbox

STATE = Path(".snakemake")
PID = "deathmatch.pid"
WRITTEN = (".snakemake", "build", "data", "figures", "paper")


def hold(state: Path = STATE) -> int | None:
    """Take the checkout for this process; return a descriptor to hold until the end.

    None if another run has it.
    """
    held = sandbox.clear_dead_lock(state)
    if held is not None:
        # Others may see the folder from another machine.
        (state / PID).write_text(f"{os.getpid()} on {socket.gethostname()}\n")
    return held


def check_writable(root: Path = Path()) -> None:
    """Raise UserError that names a folder in which a run, or a dry run, could not write."""
    folders = [root, *(root / name for name in WRITTEN), *(root / STATE).glob("*/")]
    for folder in folders:
        if folder.is_dir() and not os.access(folder, os.W_OK):
            raise UserError(
                "you may not write here, which a run does, and a dry run too",
                str(folder.absolute()),
                "clone or copy the checkout to where you may write, and run there; if a run as "
                "root made this folder, give it back: sudo chown -R $(id -un) . ; "
                "paper/reference/ can be read without running anything",
            )


def holder(state: Path = STATE) -> str | None:
    """Return who has the checkout, "pid 123 on NAME", if it is not this process; None if nobody."""
    lock = state / sandbox.RUN_LOCK
    if not lock.is_file():
        return None
    seen = os.open(lock, os.O_RDONLY)
    try:
        fcntl.flock(seen, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        file = state / PID
        pid = file.read_text().strip() if file.exists() else ""
        return f"pid {pid or 'unknown'}"
    finally:
        os.close(seen)
    return None


def taken(by: str) -> UserError:
    """Return the error of a run beside another, `by` being its `holder`."""
    return UserError(
        f"another run of snakemake, {by}, is going on in this checkout",
        remedy="wait until it ends (snakemake -n tells how far it is), or run in another clone; "
        "unlocking would let both write the same files",
    )
