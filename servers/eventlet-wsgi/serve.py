"""eventlet's WSGI server: hello, world.

serve.py ADDRESS PORT BACKLOG PROCESSES MECHANISM, where MECHANISM is epoll, poll or select.
"""

import os
import sys

import eventlet
from eventlet import hubs, wsgi

HUBS = {"epoll": "epolls", "poll": "poll", "select": "selects"}


def hello(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "12")])
    return [b"Hello, world"]


if __name__ == "__main__":
    address, port, backlog, processes, mechanism = sys.argv[1:]
    listener = eventlet.listen((address, int(port)), backlog=int(backlog), reuse_port=False)
    # All processes accept from one queue. They part before eventlet makes its hub.
    for _ in range(int(processes) - 1):
        if os.fork() == 0:
            break
    hubs.use_hub(HUBS[mechanism])
    wsgi.server(listener, hello, log_output=False, max_size=65536)
