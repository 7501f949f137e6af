"""Tornado: the hello-world page of its front page, a query value echoed in XML, or a small file.

serve.py EXPERIMENT ADDRESS PORT BACKLOG PROCESSES MECHANISM, where EXPERIMENT is dynamic for the
echo, static for a file, any other for the page, and MECHANISM is epoll, poll or select.
"""

import asyncio
import selectors
import sys
from xml.sax.saxutils import escape

import tornado.httpserver
import tornado.netutil
import tornado.process
import tornado.web

SELECTORS = {
    "epoll": selectors.EpollSelector,
    "poll": selectors.PollSelector,
    "select": selectors.SelectSelector,
}


class Hello(tornado.web.RequestHandler):
    def get(self):
        self.write("Hello, world")


class Echo(tornado.web.RequestHandler):
    def get(self):
        self.set_header("Content-Type", "text/xml; charset=UTF-8")
        value = self.get_query_argument("value", None, strip=False)
        if value is None:
            self.write("<http_test><error>no value specified</error></http_test>")
        else:
            self.write(f"<http_test><value>{escape(value)}</value></http_test>")


class File(tornado.web.RequestHandler):
    def get(self):
        self.set_header("Content-Type", "text/plain")
        self.write("User-agent: *\nDisallow: /\n")


HANDLERS = {"dynamic": ("/", Echo), "static": ("/robots.txt", File)}


async def serve(handler: tuple[str, type[tornado.web.RequestHandler]], sockets: list) -> None:
    application = tornado.web.Application([handler])
    tornado.httpserver.HTTPServer(application).add_sockets(sockets)
    await asyncio.Event().wait()


def main(experiment, address, port, backlog, processes, mechanism) -> None:
    handler = HANDLERS.get(experiment, ("/", Hello))
    sockets = tornado.netutil.bind_sockets(int(port), address, backlog=int(backlog))
    if processes != "1":
        tornado.process.fork_processes(int(processes))
    with asyncio.Runner(
        loop_factory=lambda: asyncio.SelectorEventLoop(SELECTORS[mechanism]())
    ) as runner:
        runner.run(serve(handler, sockets))


if __name__ == "__main__":
    main(*sys.argv[1:])
