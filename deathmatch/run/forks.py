"""The fork server of a run, which spares its jobs the start of Python: see `cli.fork_server`."""

import os
import socket
import subprocess
import sys
from pathlib import Path

# The socket's path; `bin/forked` reads it.
ADDRESS = "DEATHMATCH_FORK_SERVER"
# unix(7): longer paths cannot be bound.
_MOST_PATH_BYTES = 107


def begin(folder: Path) -> None:
    """Start the server for the jobs of this process; its socket is in `folder`.

    Where it cannot be reached, jobs start a Python of their own.
    """
    path = folder / "forks"
    if len(os.fsencode(path)) > _MOST_PATH_BYTES:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(path))
        listener.listen(64)
        words = [sys.executable, "-m", "deathmatch.cli.fork_server", str(listener.fileno())]
        # Sets have one order in every run: a notebook's kernel is a fork of the server.
        environment = os.environ | {"PYTHONHASHSEED": "0"}
        subprocess.Popen(
            words, pass_fds=[listener.fileno()], stdin=subprocess.DEVNULL, env=environment
        )
    os.environ[ADDRESS] = str(path)
