"""Processes forked from this one: they share its imported modules, and end when it ends."""

import ctypes
import os
import select
import signal
import sys
import traceback
from collections.abc import Callable

from deathmatch.errors import status_of

LIBC = ctypes.CDLL(None, use_errno=True)
# prctl(2)
_PR_SET_PDEATHSIG = 1


def start(function: Callable[[], int | None]) -> int:
    """Fork a process that calls a function and exits with its return value; return the pid.

    The kernel kills it when the thread that called this ends.
    """
    parent = os.pidfd_open(os.getpid())
    _flush()
    if pid := os.fork():
        os.close(parent)
        return pid
    status = 1
    try:
        die_with(parent)
        status = status_of(function)
        _flush()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent ends; close `parent`, a pidfd of it.

    The kernel sends no signal if the parent ended before the call (prctl(2)), hence the pidfd.
    """
    LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if select.select([parent], [], [], 0)[0]:
        os._exit(1)
    os.close(parent)


def wait(pid: int) -> int:
    """Wait for the end of such a process; return its exit status, 128 + N after signal N."""
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return status if status >= 0 else 128 - status


def kill(pid: int) -> None:
    """Kill such a process, and wait for its end."""
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
