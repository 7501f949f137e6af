"""eventlet: what arrives on a connection is sent back.

serve.py ADDRESS PORT BACKLOG PROCESSES
"""

import os
import sys

import eventlet


def echo(connection, _) -> None:
    try:
        while data := connection.recv(65536):
            connection.sendall(data)
    except ConnectionError:
        pass  # The client went away.
    finally:
        connection.close()


if __name__ == "__main__":
    address, port, backlog, processes = sys.argv[1:]
    listener = eventlet.listen((address, int(port)), backlog=int(backlog), reuse_port=False)
    # All processes accept from one queue. They part before eventlet makes its hub.
    for _ in range(int(processes) - 1):
        if os.fork() == 0:
            break
    eventlet.serve(listener, echo, concurrency=65536)
