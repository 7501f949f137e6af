"""The fork server of a run, which spares its jobs the start of Python: see `cli.fork_server`."""

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
    # Sets have one order in every run: a notebook's kernel is a fork of the server.
    "PYTHONHASHSEED": "0",
    # polars' allocator returns what it freed after 0.5 s, not 10 s: notebooks and the explorer
    # share the memory.
    "_RJEM_MALLOC_CONF": "dirty_decay_ms:500,muzzy_decay_ms:0",
}


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
        # Opened here: once this process is dead, the server's parent is another one.
        own = os.pidfd_open(os.getpid())
        given = [listener.fileno(), own]
        # An interrupt while it starts is for the run; the server has it blocked from the beginning.
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
