"""eventlet: what arrives on a connection is sent back. For Python 2, with eventlet 0.9, and 3.

serve.py ADDRESS PORT BACKLOG PROCESSES
"""

import os
import socket
import sys

import eventlet

# Python 2 would write its bytecode among the sources.
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_eventlet"))

from listening import listen  # noqa: E402


def echo(connection, _):
    try:
        data = connection.recv(65536)
        while data:
            connection.sendall(data)
            data = connection.recv(65536)
    except socket.error:  # noqa: UP024 (in Python 2 it is no OSError)
        pass  # The client went away.
    finally:
        connection.close()


if __name__ == "__main__":
    address, port, backlog, processes = sys.argv[1:]
    listener = listen(address, port, backlog, processes)
    eventlet.serve(listener, echo, concurrency=65536)
