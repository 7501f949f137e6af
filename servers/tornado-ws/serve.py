"""Tornado: a WebSocket server that sends every message back.

serve.py ADDRESS PORT BACKLOG PROCESSES MECHANISM, where MECHANISM is epoll, poll or select.
"""

import asyncio
import selectors
import sys

import tornado.httpserver
import tornado.netutil
import tornado.process
import tornado.web
import tornado.websocket

SELECTORS = {
    "epoll": selectors.EpollSelector,
    "poll": selectors.PollSelector,
    "select": selectors.SelectSelector,
}


class Echo(tornado.websocket.WebSocketHandler):
    def on_message(self, message: str | bytes) -> None:
        self.write_message(message, binary=isinstance(message, bytes))


async def serve(sockets: list) -> None:
    application = tornado.web.Application([("/", Echo)])
    tornado.httpserver.HTTPServer(application).add_sockets(sockets)
    await asyncio.Event().wait()


def main(address, port, backlog, processes, mechanism) -> None:
    sockets = tornado.netutil.bind_sockets(int(port), address, backlog=int(backlog))
    if processes != "1":
        tornado.process.fork_processes(int(processes))
    with asyncio.Runner(
        loop_factory=lambda: asyncio.SelectorEventLoop(SELECTORS[mechanism]())
    ) as runner:
        runner.run(serve(sockets))


if __name__ == "__main__":
    main(*sys.argv[1:])
