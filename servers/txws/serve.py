"""Twisted with txWS: a WebSocket server that sends every message back. For Python 2.

serve.py ADDRESS PORT BACKLOG PROCESSES MECHANISM, where MECHANISM is epoll, poll or select.
"""

import os
import socket
import sys
from importlib import import_module


def main(address, port, backlog, processes, mechanism):
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, int(port)))
    listener.listen(int(backlog))
    listener.setblocking(False)
    # All processes accept from one queue. They part before a reactor is made.
    for _ in range(int(processes) - 1):
        if os.fork() == 0:
            break
    # A reactor must be installed before txWS 0.7 imports the default one.
    import_module("twisted.internet." + mechanism + "reactor").install()
    from twisted.internet import reactor
    from twisted.internet.protocol import Factory, Protocol
    from txws import WebSocketFactory

    class Echo(Protocol):
        def dataReceived(self, data):
            self.transport.write(data)

    factory = Factory()
    factory.protocol = Echo
    reactor.adoptStreamPort(listener.fileno(), socket.AF_INET, WebSocketFactory(factory))
    reactor.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
