"""The folder in which a run works: it must be writable, and only one run at a time may use it."""

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
RUN_LOCK = "deathmatch.lock"  # a file, as NFS cannot lock a folder for writing
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EBADF)
TEMPORARY = "deathmatch-run-"  # as in the logger plugin, which makes such a folder first
SHELLS = re.compile(r"""[\s'"\\$&;|<>()*?\[\]#~!`{}:]""")
# Each holds a folder for each dataset.
FOLDERS = ("data", "figures", "paper")
WRITTEN = (".snakemake", "build", "data", "figures", "paper")


def hold(state: Path = STATE) -> None:
    """Lock the checkout for this process until it ends.

    Raises UserError if another run has locked it, on any machine that shares the folder, or where
    files cannot be locked.
    """
    state.mkdir(exist_ok=True)
    # Never closed: the lock ends with the process.
    lock = os.open(state / RUN_LOCK, os.O_RDWR | os.O_CREAT)
    file = state / PID
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = file.read_text().strip() if file.exists() else "unknown"
        raise UserError(
            f"another run of snakemake, pid {holder}, is going on in this checkout",
            remedy="wait until it ends (snakemake -n shows its progress), or run in another clone",
        ) from None
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        raise UserError(
            f"this file system cannot lock files, and two runs would write the same ones: "
            f"{error.strerror}",
            str(state.absolute()),
            "mount it with locks (for Lustre the option flock), or run elsewhere",
        ) from None
    # With the host's name, as the folder may be shared with other machines.
    file.write_text(f"{os.getpid()} on {socket.gethostname()}\n")


def keep_temporary(state: Path = STATE) -> Path:
    """Set the folder of this process as the jobs' folder for temporary files; return it.

    It is removed when this process ends; the folder of a run that was killed is removed now. The
    run must hold the checkout.
    """
    left = state / LEFT
    for path in left.read_text().splitlines() if left.is_file() else []:
        shutil.rmtree(path, ignore_errors=True)
    folder = tempfile.gettempdir()
    if not Path(folder).name.startswith(TEMPORARY):
        # Not in the checkout: it holds sockets of the notebooks' kernels, and the path of a socket
        # must be short.
        folder = tempfile.mkdtemp(prefix=TEMPORARY)
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    left.write_text(f"{folder}\n")
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    # Connection files of the notebooks' kernels.
    os.environ["JUPYTER_RUNTIME_DIR"] = f"{folder}/jupyter"
    return Path(folder)


def check_writable(dataset: str = "") -> None:
    """Raise UserError that names a folder where a run, or a dry run, must write and cannot.

    Folders of data, figures and papers are checked of one `dataset`.
    """
    folders = [Path(), *map(Path, WRITTEN), *STATE.glob("*/")]
    folders += [Path(name, dataset) for name in FOLDERS]
    for folder in folders:
        if folder.is_dir() and not os.access(folder, os.W_OK):
            raise UserError(
                "you may not write here, and every run must, even a dry run",
                str(folder.absolute()),
                "clone or copy the checkout to where you may write, and run there; if a run as "
                "root made this folder, take ownership: sudo chown -R $(id -un) . ; "
                "paper/reference/ can be read without running anything",
            )


def check_name(root: Path) -> None:
    """Raise UserError if the checkout's path holds a character that a shell interprets.

    ./shell checks the same; a run under Nix does not go through it.
    """
    if special := SHELLS.search(str(root)):
        raise UserError(
            f"the folder has {special[0]!r} in its name, which a shell interprets: the servers' "
            "build commands would fail",
            str(root),
            "move the clone, for example to ~/deathmatch",
        )


def make_folders(dataset: str, names: Sequence[str] = FOLDERS) -> None:
    """Make the dataset's folders in `names`, default: all of FOLDERS.

    A new folder has a .gitignore of `*`, which the owner removes to commit the dataset; an existing
    folder is left unchanged.
    """
    for name in names:
        folder = Path(name, dataset)
        if not folder.exists():
            folder.mkdir(parents=True)
            (folder / ".gitignore").write_text("*\n")
