"""The listening socket of eventlet's servers. For Python 2, with eventlet 0.9, and for Python 3."""

import os
import sys
import time

import eventlet

PYTHON_3 = sys.version_info > (3,)
now_s = time.monotonic if PYTHON_3 else time.time


class InTurns:
    """A listening socket of several processes, which accept in turn.

    Who has accepted waits before it accepts again: of a few connections that come at once, one
    process would take all.
    """

    PAUSE_S = 0.02

    def __init__(self, listener):
        self._listener, self._next = listener, 0.0

    def __getattr__(self, name):
        return getattr(self._listener, name)

    def accept(self):
        eventlet.sleep(max(0, self._next - now_s()))
        accepted = self._listener.accept()
        self._next = now_s() + self.PAUSE_S
        return accepted


def listen(address, port, backlog, processes):
    """Return the listening socket, in this process and in those that it forks."""
    # eventlet 0.9 never shares a port.
    alone = {"reuse_port": False} if PYTHON_3 else {}
    listener = eventlet.listen((address, int(port)), backlog=int(backlog), **alone)
    # All processes accept from one queue. They part before eventlet makes its hub.
    for _ in range(int(processes) - 1):
        if os.fork() == 0:
            break
    return InTurns(listener) if int(processes) > 1 else listener
