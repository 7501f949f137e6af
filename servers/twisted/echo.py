"""Twisted 12 to 26: a query value echoed in XML, or a page that says hello. For Python 2 and 3.

echo.py EXPERIMENT ADDRESS PORT BACKLOG MECHANISM, where EXPERIMENT is dynamic for the echo, any
other for the page, and MECHANISM is epoll, poll or select.
"""

import sys
from importlib import import_module
from xml.sax.saxutils import escape

experiment, address, port, backlog, mechanism = sys.argv[1:]
# A reactor must be installed before anything imports the usual one, as twisted.web did in 2012.
import_module("twisted.internet." + mechanism + "reactor").install()

from twisted.internet import reactor  # noqa: E402
from twisted.web import resource, server  # noqa: E402


class Site(server.Site):
    def log(self, request):
        """Write no access log: without a path Twisted formats each line for its own log."""


class Hello(resource.Resource):
    isLeaf = True

    def render_GET(self, request):
        return b"Hello, world"


class Echo(resource.Resource):
    isLeaf = True

    def render_GET(self, request):
        request.setHeader("Content-Type", "text/xml; charset=UTF-8")
        if b"value" not in request.args:
            return b"<http_test><error>no value specified</error></http_test>"
        value = escape(request.args[b"value"][0].decode("utf-8", "replace"))
        return b"<http_test><value>" + value.encode("utf-8") + b"</value></http_test>"


if __name__ == "__main__":
    # An idle connection stays; today's Twisted ends it after 60 s, which a long trial would reach.
    site = Site(Echo() if experiment == "dynamic" else Hello(), timeout=None)
    reactor.listenTCP(int(port), site, backlog=int(backlog), interface=address)
    reactor.run()
