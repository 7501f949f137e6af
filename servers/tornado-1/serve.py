"""Tornado 0.2 to 2.4: the hello-world page of its front page, or a query value echoed in XML.

serve.py EXPERIMENT ADDRESS PORT BACKLOG MECHANISM [PROCESSES], where EXPERIMENT is dynamic for the
echo, any other for the page, and MECHANISM is epoll or select.
"""

import os
import select
import sys
from xml.sax.saxutils import escape

import tornado.httpserver
import tornado.ioloop
import tornado.web

MECHANISMS = {"epoll": select.epoll, "select": tornado.ioloop._Select}


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
    server.io_loop = tornado.ioloop.IOLoop(MECHANISMS[mechanism]())
    server.start(1)
    server.io_loop.start()


if __name__ == "__main__":
    main(*sys.argv[1:])
