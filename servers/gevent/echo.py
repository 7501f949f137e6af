"""gevent's WSGI server: a query value echoed in XML, or a page that says hello.

For Python 2, with gevent 0.13 to 22.10, and for Python 3.

echo.py EXPERIMENT ADDRESS PORT BACKLOG MECHANISM DELAY, where EXPERIMENT is dynamic for the echo,
any other for the page, MECHANISM is epoll, poll, select or io_uring, and DELAY is delay or nodelay:
whether TCP may hold small segments back. Before 1.3 gevent offers no choice, and waits in epoll.
"""

import sys
from importlib import import_module
from xml.sax.saxutils import escape

import gevent
from gevent import socket
from gevent.pywsgi import WSGIHandler, WSGIServer

parse_qs = import_module("urllib.parse" if sys.version_info > (3,) else "urlparse").parse_qs
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
        body = "<http_test><value>" + escape(query["value"][0]) + "</value></http_test>"
    else:
        body = "<http_test><error>no value specified</error></http_test>"
    start_response("200 OK", [("Content-Type", "text/xml; charset=UTF-8")])
    return [body.encode()]


def listen(address, port, backlog, delay):
    """Return the listening socket; every release of gevent takes one."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if delay == "nodelay":
        # On Linux, what a listener accepts inherits the option.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.bind((address, port))
    listener.listen(backlog)
    return listener


if __name__ == "__main__":
    experiment, address, port, backlog, mechanism, delay = sys.argv[1:]
    # The hub's loop is made once, by the first that needs it.
    if hasattr(gevent, "config"):
        gevent.config.libev_backend = BACKENDS.get(mechanism, mechanism)
    application = echo if experiment == "dynamic" else hello
    listener = listen(address, int(port), int(backlog), delay)
    WSGIServer(listener, application, log=None, handler_class=Handler).serve_forever()
