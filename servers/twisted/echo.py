"""Twisted: a query value echoed in XML.

echo.py ADDRESS PORT BACKLOG MECHANISM, where MECHANISM is epoll, poll or select.
"""

import sys
from importlib import import_module
from xml.sax.saxutils import escape

from twisted.web import resource, server


class Echo(resource.Resource):
    isLeaf = True

    def render_GET(self, request):
        request.setHeader("Content-Type", "text/xml; charset=UTF-8")
        if b"value" not in request.args:
            return b"<http_test><error>no value specified</error></http_test>"
        value = request.args[b"value"][0].decode(errors="replace")
        return f"<http_test><value>{escape(value)}</value></http_test>".encode()


if __name__ == "__main__":
    address, port, backlog, mechanism = sys.argv[1:]
    # A reactor must be installed before anything imports the usual one.
    import_module(f"twisted.internet.{mechanism}reactor").install()
    from twisted.internet import reactor

    reactor.listenTCP(int(port), server.Site(Echo()), backlog=int(backlog), interface=address)
    reactor.run()
