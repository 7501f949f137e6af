"""eventlet's WSGI server with WebOb's decorator: hello, world.

serve.py ADDRESS PORT BACKLOG PROCESSES
"""

import os
import sys

from eventlet import wsgi
from webob import Response
from webob.dec import wsgify

# Python 2 would write its bytecode among the sources.
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_eventlet"))

from listening import listen  # noqa: E402


@wsgify
def hello(request):
    return Response("Hello, world", content_type="text/plain")


if __name__ == "__main__":
    address, port, backlog, processes = sys.argv[1:]
    listener = listen(address, port, backlog, processes)
    wsgi.server(listener, hello, log_output=False, max_size=65536)
