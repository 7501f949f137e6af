"""Tornado 0.2 to 5.1: the hello-world page of its front page, or a query value echoed in XML.

before_6.py EXPERIMENT ADDRESS PORT BACKLOG MECHANISM [PROCESSES], where EXPERIMENT is dynamic for
the echo, any other for the page, and MECHANISM is epoll or select, which Tornado offers until 2.4.
For Python 2; with Tornado 5.1 for Python 3 too.
"""

import collections
import os
import select
import sys
from xml.sax.saxutils import escape

try:
    # Tornado 5.1 looks for it where Python 3.10 no longer has it.
    from collections.abc import MutableMapping

    collections.MutableMapping = MutableMapping
except ImportError:
    pass  # Python 2.

import tornado.httpserver
import tornado.ioloop
import tornado.web

MECHANISMS = {"epoll": select.epoll, "select": getattr(tornado.ioloop, "_Select", None)}


class Hello(tornado.web.RequestHandler):
    def get(self):
        self.write("Hello, world")


class Echo(tornado.web.RequestHandler):
    def get(self):
        self.set_header("Content-Type", "text/xml; charset=UTF-8")
        value = self.get_argument("value", None)
        if value is None:
            self.write("<http_test><error>no value specified</error></http_test>")
        else:
            self.write("<http_test><value>" + escape(value) + "</value></http_test>")


def main(experiment, address, port, backlog, mechanism, processes=1):
    application = tornado.web.Application([("/", Echo if experiment == "dynamic" else Hello)])
    server = tornado.httpserver.HTTPServer(application)
    server.bind(int(port), address)
    # bind() listens with 128, fixed before 2.0; the kernel takes the number of the last listen(2).
    for listener in getattr(server, "_pending_sockets", None) or [server._socket]:
        listener.listen(int(backlog))
    # All processes accept from one queue. Tornado's own forking knows no loop but its default one.
    for _ in range(int(processes) - 1):
        if os.fork() == 0:
            break
    if MECHANISMS["select"]:
        loop = server.io_loop = tornado.ioloop.IOLoop(MECHANISMS[mechanism]())
    else:
        loop = tornado.ioloop.IOLoop.instance()
    server.start(1)
    loop.start()


if __name__ == "__main__":
    main(*sys.argv[1:])
