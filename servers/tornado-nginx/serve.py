"""Tornado processes behind nginx, as one server.

serve.py ADDRESS PORT BACKLOG WORKERS FRONTENDS UPSTREAM, where UPSTREAM is close or keep-alive.
The frontends listen on the loopback ports after PORT.
"""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import tornado.httpserver
import tornado.netutil
import tornado.web

# HTTP version, Connection header and directive by which nginx asks the frontends.
UPSTREAM = {"close": ("1.0", "close", ""), "keep-alive": ("1.1", '""', "keepalive 64;")}


class Hello(tornado.web.RequestHandler):
    def get(self):
        self.write("Hello, world")


async def serve(sockets: list) -> None:
    application = tornado.web.Application([("/", Hello)])
    tornado.httpserver.HTTPServer(application).add_sockets(sockets)
    await asyncio.Event().wait()


def configuration(address, port, backlog, workers, frontends, upstream) -> str:
    version, connection, keepalive = UPSTREAM[upstream]
    values = {
        "host": address, "port": port, "backlog": backlog, "workers": workers,
        "version": version, "connection": connection, "keepalive": keepalive,
        "servers": " ".join(f"server 127.0.0.1:{frontend} max_fails=0;" for frontend in frontends),
    }  # fmt: skip
    text = Path(__file__).with_name("nginx.conf").read_text()
    for key, value in values.items():
        text = text.replace(f"@{key}@", str(value))
    return text


def main(address, port, backlog, workers, frontends, upstream) -> int:
    ports = [int(port) + 1 + n for n in range(int(frontends))]
    # They listen before nginx does, so that its first request finds them.
    listening = [tornado.netutil.bind_sockets(p, "127.0.0.1", backlog=int(backlog)) for p in ports]
    children = []
    for sockets in listening:
        if pid := os.fork():
            children.append(pid)
        else:
            asyncio.run(serve(sockets))
    text = configuration(address, port, backlog, workers, ports, upstream)
    Path("nginx.conf").write_text(text)
    nginx = subprocess.Popen(["nginx", "-p", os.getcwd(), "-c", "nginx.conf", "-e", "stderr"])
    signal.signal(signal.SIGTERM, lambda *_: nginx.terminate())
    status = nginx.wait()
    for pid in children:
        os.kill(pid, signal.SIGTERM)
    return abs(status)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
