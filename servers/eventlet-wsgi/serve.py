"""eventlet's WSGI server: hello, world. For Python 2, with eventlet 0.9, and for Python 3.

serve.py ADDRESS PORT BACKLOG PROCESSES MECHANISM, where MECHANISM is epoll, poll or select.
"""

import os
import sys
import time

import eventlet
from eventlet import hubs, wsgi

PYTHON_3 = sys.version_info > (3,)
now_s = time.monotonic if PYTHON_3 else time.time
HUBS = {"epoll": "epolls", "poll": "poll", "select": "selects"}


def hello(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "12")])
    return [b"Hello, world"]


class NoLog:
    """Where eventlet 0.9 writes its access log, which it knows no switch for."""

    def write(self, text):
        """Drop a line."""


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


if __name__ == "__main__":
    address, port, backlog, processes, mechanism = sys.argv[1:]
    # eventlet 0.9 never shares a port.
    alone = {"reuse_port": False} if PYTHON_3 else {}
    listener = eventlet.listen((address, int(port)), backlog=int(backlog), **alone)
    # All processes accept from one queue. They part before eventlet makes its hub.
    for _ in range(int(processes) - 1):
        if os.fork() == 0:
            break
    if int(processes) > 1:
        listener = InTurns(listener)
    hubs.use_hub(HUBS[mechanism])
    no_log = {"log_output": False} if PYTHON_3 else {"log": NoLog()}
    wsgi.server(listener, hello, max_size=65536, **no_log)
