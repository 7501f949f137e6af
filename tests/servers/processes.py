"""A server of several processes: processes.py KIND ADDRESS PORT.

recycles   a worker ends after 20 requests, each of which burns 2 ms of CPU
forks      each request is answered by a child of its own, which burns 2 ms
shares     eight workers share a buffer of 64 MB that was filled before they began
orphans    as recycles, but nobody waits for a worker that ended
"""

import os
import signal
import socket
import sys
import time

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\nConnection: close\r\n\r\nHello, world"
BURNT_S = 0.002
REQUESTS = 20
WORKERS, SHARED_BYTES = 8, 64_000_000


def burn() -> None:
    end = time.process_time() + BURNT_S
    while time.process_time() < end:
        pass


def answer(listener: socket.socket, burns: bool = True) -> None:
    connection, _ = listener.accept()
    with connection:
        if connection.recv(4096):
            if burns:
                burn()
            connection.sendall(ANSWER)


def child(work) -> int:
    pid = os.fork()
    if not pid:
        work()
        os._exit(0)
    return pid


def main(kind: str, address: str, port: str) -> None:
    listener = socket.create_server((address, int(port)), backlog=1024)
    if kind == "shares":
        buffer = bytearray(b"x" * SHARED_BYTES)
        for _ in range(WORKERS):
            child(lambda: [answer(listener, burns=False) for _ in range(buffer[0] * 10**6)])
    if kind == "orphans":
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        if kind == "forks":
            os.waitpid(child(lambda: answer(listener)), 0)
            continue
        if kind == "shares":
            signal.pause()
        pid = child(lambda: [answer(listener) for _ in range(REQUESTS)])
        try:
            os.waitpid(pid, 0)
        except ChildProcessError:
            continue


if __name__ == "__main__":
    main(*sys.argv[1:])
