"""eventlet's WSGI server: hello, world. For Python 2, with eventlet 0.9 to 0.33, and 3.

serve.py ADDRESS PORT BACKLOG PROCESSES MECHANISM, where MECHANISM is epoll, poll or select.
"""

import os
import sys

from eventlet import hubs, wsgi

# Python 2 would write its bytecode among the sources.
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_eventlet"))

from listening import listen  # noqa: E402

HUBS = {"epoll": "epolls", "poll": "poll", "select": "selects"}


def hello(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "12")])
    return [b"Hello, world"]


class NoLog:
    """Where eventlet 0.9 writes its access log, which it knows no switch for."""

    def write(self, text):
        """Drop a line."""


if __name__ == "__main__":
    address, port, backlog, processes, mechanism = sys.argv[1:]
    listener = listen(address, port, backlog, processes)
    hubs.use_hub(HUBS[mechanism])
    has_switch = "log_output" in wsgi.server.__code__.co_varnames
    no_log = {"log_output": False} if has_switch else {"log": NoLog()}
    wsgi.server(listener, hello, max_size=65536, **no_log)
