"""Start the fork server of a run, by which its jobs need not start Python: `cli.fork_server`."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

# The socket's path; `bin/forked` reads it.
ADDRESS = "DEATHMATCH_FORK_SERVER"
# unix(7): longer paths cannot be bound.
_MOST_PATH_BYTES = 107
_ENVIRONMENT = {
    # A notebook's kernel is a fork of the server, and sets must have the same order in every run.
    "PYTHONHASHSEED": "0",
    # polars' allocator returns freed memory after 0.5 s, not 10 s: notebooks and the explorer run
    # at the same time.
    "_RJEM_MALLOC_CONF": "dirty_decay_ms:500,muzzy_decay_ms:0",
}


def begin(folder: Path) -> None:
    """Start the server for the jobs of this process; its socket is in `folder`.

    A job that cannot reach it starts Python.
    """
    path = folder / "forks"
    if len(os.fsencode(path)) > _MOST_PATH_BYTES:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(path))
        listener.listen(64)
        # Opened here, not by the server: if this process ends first, its pid means nothing there.
        own = os.pidfd_open(os.getpid())
        given = [listener.fileno(), own]
        # The server inherits the block, so that an interrupt during its start does not end it.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        subprocess.Popen(
            [sys.executable, "-m", "deathmatch.cli.fork_server", *map(str, given)],
            pass_fds=given,
            stdin=subprocess.DEVNULL,
            env=os.environ | _ENVIRONMENT,
        )
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(own)
    os.environ[ADDRESS] = str(path)
