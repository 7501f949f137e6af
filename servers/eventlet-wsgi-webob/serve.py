"""eventlet's WSGI server with WebOb's decorator: hello, world.

serve.py ADDRESS PORT BACKLOG PROCESSES
"""

import os
import sys
import time

import eventlet
from eventlet import wsgi
from webob import Response
from webob.dec import wsgify


@wsgify
def hello(request):
    return Response("Hello, world", content_type="text/plain")


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
    wsgi.server(listener, hello, log_output=False, max_size=65536)
