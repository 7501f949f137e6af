"""eventlet's WSGI server with WebOb's decorator: hello, world.

serve.py ADDRESS PORT BACKLOG PROCESSES
"""

import os
import sys

import eventlet
from eventlet import wsgi
from webob import Response
from webob.dec import wsgify


@wsgify
def hello(request):
    return Response("Hello, world", content_type="text/plain")


if __name__ == "__main__":
    address, port, backlog, processes = sys.argv[1:]
    listener = eventlet.listen((address, int(port)), backlog=int(backlog), reuse_port=False)
    # All processes accept from one queue. They part before eventlet makes its hub.
    for _ in range(int(processes) - 1):
        if os.fork() == 0:
            break
    wsgi.server(listener, hello, log_output=False, max_size=65536)
