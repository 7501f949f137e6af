"""gevent's WSGI server: a query value echoed in XML, or a page that says hello.

echo.py EXPERIMENT ADDRESS PORT BACKLOG MECHANISM DELAY, where EXPERIMENT is dynamic for the echo,
any other for the page, MECHANISM is epoll, poll, select or io_uring, and DELAY is delay or nodelay:
whether TCP may hold small segments back.
"""

import socket
import sys
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

import gevent
from gevent.pywsgi import WSGIHandler, WSGIServer

BACKENDS = {"io_uring": "linux_iouring"}


class Handler(WSGIHandler):
    def log_request(self):
        """Write no access log: with log=None gevent formats each line and drops it."""


def hello(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"Hello, world"]


def echo(environ, start_response):
    query = parse_qs(environ["QUERY_STRING"], keep_blank_values=True)
    if "value" in query:
        body = f"<http_test><value>{escape(query['value'][0])}</value></http_test>"
    else:
        body = "<http_test><error>no value specified</error></http_test>"
    start_response("200 OK", [("Content-Type", "text/xml; charset=UTF-8")])
    return [body.encode()]


if __name__ == "__main__":
    experiment, address, port, backlog, mechanism, delay = sys.argv[1:]
    # The hub's loop is made once, by the first that needs it.
    gevent.config.libev_backend = BACKENDS.get(mechanism, mechanism)
    gevent.get_hub()
    application = echo if experiment == "dynamic" else hello
    server = WSGIServer(
        (address, int(port)), application, backlog=int(backlog), log=None, handler_class=Handler
    )
    server.init_socket()
    if delay == "nodelay":
        # On Linux, what a listener accepts inherits the option.
        server.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    server.serve_forever()
