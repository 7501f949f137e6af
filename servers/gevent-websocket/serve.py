"""gevent with gevent-websocket: a WebSocket server that sends every message back.

serve.py ADDRESS PORT BACKLOG PROCESSES
"""

import contextlib
import sys

import gevent
from gevent.pywsgi import WSGIServer
from geventwebsocket import WebSocketError
from geventwebsocket.handler import WebSocketHandler


class Handler(WebSocketHandler):
    def log_request(self):
        """Write no access log: with log=None gevent formats each line and drops it."""


def echo(environ, start_response):
    websocket = environ.get("wsgi.websocket")
    if websocket is None:
        start_response("426 Upgrade Required", [("Upgrade", "websocket")])
        return [b"WebSocket only\n"]
    # It raises where the client goes away without a close.
    with contextlib.suppress(WebSocketError):
        while (message := websocket.receive()) is not None:
            websocket.send(message)
    return []


if __name__ == "__main__":
    address, port, backlog, processes = sys.argv[1:]
    server = WSGIServer(
        (address, int(port)), echo, backlog=int(backlog), log=None, handler_class=Handler
    )
    server.init_socket()
    # All processes accept from one queue.
    for _ in range(int(processes) - 1):
        if gevent.fork() == 0:
            break
    server.serve_forever()
