"""eventlet: what arrives on a connection is sent back.

serve.py ADDRESS PORT BACKLOG PROCESSES
"""

import os
import sys
import time

import eventlet


def echo(connection, _) -> None:
    try:
        while data := connection.recv(65536):
            connection.sendall(data)
    except ConnectionError:
        pass  # The client went away.
    finally:
        connection.close()


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
        eventlet.sleep(max(0, self._next - time.monotonic()))
        accepted = self._listener.accept()
        self._next = time.monotonic() + self.PAUSE_S
        return accepted


if __name__ == "__main__":
    address, port, backlog, processes = sys.argv[1:]
    listener = eventlet.listen((address, int(port)), backlog=int(backlog), reuse_port=False)
    # All processes accept from one queue. They part before eventlet makes its hub.
    for _ in range(int(processes) - 1):
        if os.fork() == 0:
            break
    if int(processes) > 1:
        listener = InTurns(listener)
    eventlet.serve(listener, echo, concurrency=65536)
