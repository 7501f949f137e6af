"""The folder in which a run works: it can be written to, and one run at a time works in it."""

import atexit
import errno
import fcntl
import os
import re
import shutil
import socket
import tempfile
from collections.abc import Sequence
from pathlib import Path

from deathmatch.errors import UserError

STATE = Path(".snakemake")
PID = "deathmatch.pid"
LEFT = "deathmatch.left"
RUN_LOCK = "deathmatch.lock"  # a file, as NFS locks no folder for writing
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EBADF)
TEMPORARY = "deathmatch-run-"  # what the logger plugin begins the name of its folder with
SHELLS = re.compile(r"""[\s'"\\$&;|<>()*?\[\]#~!`{}:]""")
# Of a dataset; what its measurement makes stays out of git until its owner decides otherwise.
FOLDERS = ("data", "figures", "paper")
WRITTEN = (".snakemake", "build", "data", "figures", "paper")


def hold(state: Path = STATE) -> None:
    """Take the checkout for this process, until it ends, however it does.

    Raises UserError if another run has it, on any machine that shares the folder, or where files
    cannot be locked.
    """
    state.mkdir(exist_ok=True)
    # Never closed: the lock goes with the process.
    lock = os.open(state / RUN_LOCK, os.O_RDWR | os.O_CREAT)
    file = state / PID
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = file.read_text().strip() if file.exists() else "unknown"
        raise UserError(
            f"another run of snakemake, pid {holder}, is going on in this checkout",
            remedy="wait until it ends (snakemake -n says how far it is), or run in another clone",
        ) from None
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        raise UserError(
            f"this file system locks no files: {error.strerror}",
            str(state.absolute()),
            "mount it with locks, as Lustre is with the option flock, or run elsewhere: "
            "without them two runs would write the same files",
        ) from None
    # Others may see the folder from another machine.
    file.write_text(f"{os.getpid()} on {socket.gethostname()}\n")


def keep_temporary(state: Path = STATE) -> Path:
    """Have the jobs put temporary files into the folder of this process; return it.

    For a run that holds the checkout. The folder goes as the process ends; that of a run that was
    killed goes now.
    """
    left = state / LEFT
    for path in left.read_text().splitlines() if left.is_file() else []:
        shutil.rmtree(path, ignore_errors=True)
    folder = tempfile.gettempdir()
    if not Path(folder).name.startswith(TEMPORARY):
        # Not in the checkout: sockets of the notebooks' kernels stand in it, whose paths must be
        # short.
        folder = tempfile.mkdtemp(prefix=TEMPORARY)
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    left.write_text(f"{folder}\n")
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    # Where kernels of notebooks say how they are reached.
    os.environ["JUPYTER_RUNTIME_DIR"] = f"{folder}/jupyter"
    return Path(folder)


def check_writable(dataset: str = "") -> None:
    """Raise UserError that names a folder where a run, or a dry run, cannot write.

    Of a `dataset`, that of its data, its figures and its paper.
    """
    folders = [Path(), *map(Path, WRITTEN), *STATE.glob("*/")]
    folders += [Path(name, dataset) for name in FOLDERS]
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
    if special := SHELLS.search(str(root)):
        raise UserError(
            f"the folder has {special[0]!r} in its name, which a shell reads: the servers' build "
            "commands would take it for two",
            str(root),
            "move the clone, for example to ~/deathmatch",
        )


def make_folders(dataset: str, names: Sequence[str] = FOLDERS) -> None:
    """Make the dataset's folders; each new one ignores itself, by a .gitignore of `*`.

    `names` are those of FOLDERS to make it in; default: all. An existing folder stays as it is: its
    .gitignore is removed to commit the dataset.
    """
    for name in names:
        folder = Path(name, dataset)
        if not folder.exists():
            folder.mkdir(parents=True)
            (folder / ".gitignore").write_text("*\n")
