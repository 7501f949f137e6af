"""Twisted with autobahn: a WebSocket server that sends every message back.

serve.py ADDRESS PORT BACKLOG PROCESSES MECHANISM, where MECHANISM is epoll, poll or select.
"""

import os
import socket
import sys
from importlib import import_module

from autobahn.twisted.websocket import WebSocketServerFactory, WebSocketServerProtocol


class Echo(WebSocketServerProtocol):
    def onMessage(self, payload: bytes, isBinary: bool) -> None:
        self.sendMessage(payload, isBinary)


def main(address, port, backlog, processes, mechanism) -> None:
    listener = socket.create_server((address, int(port)), backlog=int(backlog))
    listener.setblocking(False)
    # All processes accept from one queue. They part before a reactor is made.
    for _ in range(int(processes) - 1):
        if os.fork() == 0:
            break
    # A reactor must be installed before anything imports the usual one.
    import_module(f"twisted.internet.{mechanism}reactor").install()
    from twisted.internet import reactor

    factory = WebSocketServerFactory()
    factory.protocol = Echo
    factory.setProtocolOptions(openHandshakeTimeout=0, webStatus=False)
    reactor.adoptStreamPort(listener.fileno(), socket.AF_INET, factory)
    reactor.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
