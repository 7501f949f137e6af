"""gevent with gevent-websocket: a WebSocket server that sends every message back.

For Python 2, with gevent 0.13, and for Python 3.

serve.py ADDRESS PORT BACKLOG PROCESSES
"""

import sys

import gevent
from gevent import socket
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
    try:
        message = websocket.receive()
        while message is not None:
            websocket.send(message)
            message = websocket.receive()
    except (WebSocketError, socket.error):
        pass  # The client went away without a close.
    return []


def listen(address, port, backlog):
    """Return the listening socket; every release of gevent takes one."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    listener.listen(backlog)
    return listener


if __name__ == "__main__":
    address, port, backlog, processes = sys.argv[1:]
    listener = listen(address, int(port), int(backlog))
    server = WSGIServer(listener, echo, log=None, handler_class=Handler)
    # All processes accept from one queue.
    for _ in range(int(processes) - 1):
        if gevent.fork() == 0:
            break
    server.serve_forever()
