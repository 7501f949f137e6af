"""The testbed's lock, and the words to run a command in namespaces that end with their maker."""

import math
import os
import socket
import subprocess
import time
from collections.abc import Callable, Sequence

# An abstract socket: it has no file, ends with its holder, and belongs to a network namespace.
LOCK = "\0deathmatch-testbed"
_RETRY_S = 0.2


def lock(
    wait_s: float = math.inf, waiting: Callable[[], object] = lambda: None
) -> socket.socket | None:
    """Return the lock of trials and agents; None if another process holds it for all of `wait_s`.

    `waiting` is called once if another process holds it.
    """
    held = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    ends = None
    while True:
        try:
            held.bind(LOCK)
            return held
        except OSError:
            if ends is None:
                waiting()
                ends = time.monotonic() + wait_s
            if time.monotonic() >= ends:
                held.close()
                return None
            time.sleep(_RETRY_S)


def words(*options: str) -> list[str]:
    """Return the words before a command for mount and pid namespaces that end with this process.

    If this process dies, `setpriv` has `unshare` killed, and `unshare --kill-child` the first
    process of the pid namespace. Users other than root also get a user namespace, with these
    `options` of unshare(1).
    """
    user = [] if os.geteuid() == 0 else ["--user", *options]
    unshare = ["unshare", *user, "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    return ["setpriv", "--pdeathsig", "KILL", "--", *unshare, "--"]


def forbidden(words: Sequence[str]) -> str:
    """Return why these words cannot be used, "" if they can; FileNotFoundError without a tool.

    Starts a process.
    """
    probe = subprocess.run(
        [*words, "true"], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    return "" if probe.returncode == 0 else probe.stderr.strip() or "unshare failed"
