"""Tornado with a constant answer: what Ostinelli's echo answers to our load, whatever it is asked.

serve.py ADDRESS PORT BACKLOG
"""

import asyncio
import sys

import tornado.httpserver
import tornado.netutil
import tornado.web


class Constant(tornado.web.RequestHandler):
    def get(self):
        self.set_header("Content-Type", "text/xml; charset=UTF-8")
        self.write("<http_test><value>benchmarks &amp; servers</value></http_test>")


async def serve(sockets: list) -> None:
    application = tornado.web.Application([("/", Constant)])
    tornado.httpserver.HTTPServer(application).add_sockets(sockets)
    await asyncio.Event().wait()


def main(address, port, backlog) -> None:
    asyncio.run(serve(tornado.netutil.bind_sockets(int(port), address, backlog=int(backlog))))


if __name__ == "__main__":
    main(*sys.argv[1:])
