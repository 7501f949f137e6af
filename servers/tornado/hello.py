"""Tornado's hello-world page, on a chosen readiness mechanism.

hello.py ADDRESS PORT BACKLOG MECHANISM, where MECHANISM is epoll, poll or select.
"""

import asyncio
import selectors
import sys

import tornado.httpserver
import tornado.netutil
import tornado.web

SELECTORS = {
    "epoll": selectors.EpollSelector,
    "poll": selectors.PollSelector,
    "select": selectors.SelectSelector,
}


class Hello(tornado.web.RequestHandler):
    def get(self):
        self.write("Hello, world")


async def main(address: str, port: int, backlog: int) -> None:
    application = tornado.web.Application([("/", Hello)])
    sockets = tornado.netutil.bind_sockets(port, address, backlog=backlog)
    tornado.httpserver.HTTPServer(application).add_sockets(sockets)
    await asyncio.Event().wait()


if __name__ == "__main__":
    address, port, backlog, mechanism = sys.argv[1:]
    with asyncio.Runner(
        loop_factory=lambda: asyncio.SelectorEventLoop(SELECTORS[mechanism]())
    ) as runner:
        runner.run(main(address, int(port), int(backlog)))
