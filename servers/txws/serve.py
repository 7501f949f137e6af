"""Twisted with txWS: a WebSocket server that sends every message back.

serve.py ADDRESS PORT BACKLOG PROCESSES
"""

import os
import socket
import sys

from twisted.internet import epollreactor
from twisted.internet.protocol import Factory, Protocol


class Echo(Protocol):
    def dataReceived(self, data: bytes) -> None:
        self.transport.write(data)


def main(address, port, backlog, processes) -> None:
    listener = socket.create_server((address, int(port)), backlog=int(backlog))
    listener.setblocking(False)
    # All processes accept from one queue. They part before a reactor is made.
    for _ in range(int(processes) - 1):
        if os.fork() == 0:
            break
    epollreactor.install()
    from twisted.internet import reactor
    from txws import WebSocketFactory

    factory = WebSocketFactory(Factory.forProtocol(Echo))
    reactor.adoptStreamPort(listener.fileno(), socket.AF_INET, factory)
    reactor.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
