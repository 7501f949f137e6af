"""The folder in which a run works: it can be written to, and one run at a time works in it."""

import atexit
import base64
import fcntl
import os
import re
import shutil
import socket
import tempfile
from collections.abc import Collection
from pathlib import Path

from deathmatch.errors import UserError
from deathmatch.hosts import sandbox
from deathmatch.run import untracked

STATE = Path(".snakemake")
PID = "deathmatch.pid"
LEFT = "deathmatch.left"
SHELLS = re.compile(r"""[\s'"\\$&;|<>()*?\[\]#~!`{}:]""")
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


def temporary(made: Collection[str], state: Path = STATE) -> Path:
    """Have this process and its jobs put temporary files into a folder of the run; return it.

    For who holds the checkout. It goes as this process ends. The next run removes that of one that
    was killed, and what that had `made` before it came here.
    """
    left = state / LEFT
    for path in left.read_text().splitlines() if left.is_file() else []:
        shutil.rmtree(path, ignore_errors=True)
    # Not in the checkout: sockets of the notebooks' kernels stand in it, whose paths must be short.
    folder = f"{tempfile.gettempdir()}/deathmatch-run-{os.urandom(4).hex()}"
    left.write_text("".join(f"{path}\n" for path in (folder, *made)))
    os.mkdir(folder, 0o700)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    # Where kernels of notebooks say how they are reached.
    os.environ["JUPYTER_RUNTIME_DIR"] = f"{folder}/jupyter"
    return Path(folder)


def forget_incomplete(whole: Collection[str], state: Path = STATE) -> None:
    """Have Snakemake take these files for finished, although the run that made them was killed.

    For who holds the checkout. Snakemake has for each file that is being made one in `incomplete`,
    named by its path in base64, of which each part but the last is a folder with an @ before it.
    """
    folder = state / "incomplete"
    for mark in [path for path in folder.rglob("*") if path.is_file()]:
        name = "".join(part.removeprefix("@") for part in mark.relative_to(folder).parts)
        try:
            path = base64.urlsafe_b64decode(name).decode()
        except ValueError:
            continue
        if path in whole:
            mark.unlink()


def check_writable(root: Path = Path(), dataset: str = "") -> None:
    """Raise UserError that names a folder in which a run, or a dry run, could not write.

    Of a `dataset`, that of its data, its figures and its paper.
    """
    folders = [root, *(root / name for name in WRITTEN), *(root / STATE).glob("*/")]
    folders += [root / name / dataset for name in untracked.FOLDERS]
    for folder in folders:
        if folder.is_dir() and not os.access(folder, os.W_OK):
            raise UserError(
                "you may not write here, which a run does, and a dry run too",
                str(folder.absolute()),
                "clone or copy the checkout to where you may write, and run there; if a run as "
                "root made this folder, give it back: sudo chown -R $(id -un) . ; "
                "paper/reference/ can be read without running anything",
            )


def check_name(root: Path) -> None:
    """Raise UserError if the checkout's path holds what a shell reads: commands would be others.

    As ./shell says it, through which not every run comes.
    """
    if found := SHELLS.search(str(root)):
        raise UserError(
            f"the folder has {found[0]!r} in its name, which a shell reads: the servers' build "
            "commands would take it for two",
            str(root),
            "move the clone, for example to ~/deathmatch",
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
