"""gevent's WSGI server: a query value echoed in XML.

echo.py ADDRESS PORT BACKLOG MECHANISM DELAY, where MECHANISM is epoll, poll or select and DELAY
is delay or nodelay: whether TCP may hold small segments back.
"""

import socket
import sys
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

import gevent
from gevent.pywsgi import WSGIServer


def echo(environ, start_response):
    query = parse_qs(environ["QUERY_STRING"], keep_blank_values=True)
    if "value" in query:
        body = f"<http_test><value>{escape(query['value'][0])}</value></http_test>"
    else:
        body = "<http_test><error>no value specified</error></http_test>"
    start_response("200 OK", [("Content-Type", "text/xml; charset=UTF-8")])
    return [body.encode()]


if __name__ == "__main__":
    address, port, backlog, mechanism, delay = sys.argv[1:]
    # The hub's loop is made once, by the first that needs it.
    gevent.config.libev_backend = mechanism
    gevent.get_hub()
    server = WSGIServer((address, int(port)), echo, backlog=int(backlog), log=None)
    server.init_socket()
    if delay == "nodelay":
        # On Linux, what a listener accepts inherits the option.
        server.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    server.serve_forever()
