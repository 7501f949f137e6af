"""A server that is broken in one way: broken.py MODE ADDRESS PORT.

It answers one request after the other, as the backlog experiment asks, until its mode shows.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\nConnection: close\r\n\r\nHello, world"
BUSY = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
# More than the warm-up and the first rate offer together, and a quarter of what the second rate
# offers: a busy machine that delivers only some of it breaks the server too.
REQUESTS_BEFORE_IT_BREAKS = 115
FLOOD_BYTES = 30_000_000


def serve(mode: str, listener: socket.socket) -> None:
    served = 0
    held = []
    while True:
        connection, _ = listener.accept()
        if mode == "holds":
            held.append(connection)
            continue
        connection.settimeout(2)
        try:
            request = connection.recv(4096)
            if not request and mode == "fragile":
                sys.exit("nothing was asked")
            if request:
                served += b"httperf" in request
                reply(mode, connection, request, served)
        except OSError:
            pass
        connection.close()


def reply(mode: str, connection: socket.socket, request: bytes, served: int) -> None:
    broken = served > REQUESTS_BEFORE_IT_BREAKS
    if mode == "dies" and broken:
        print("out of luck", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    if mode == "grows" and broken:
        hoard = []
        while True:
            hoard.append(bytearray(10_000_000))
    if mode == "turns" and broken:
        mode = "wrong"
    if mode == "spreads" and broken and threading.active_count() == 1:
        threading.Thread(target=spread, daemon=True).start()
    if mode == "tunes" and broken:
        Path("/proc/sys/net/ipv4/tcp_fin_timeout").write_text("7")
    if mode == "drips":
        connection.sendall(ANSWER.partition(b"\r\n\r\n")[0])
        while True:
            connection.sendall(b"x")
            time.sleep(0.5)
    if mode == "warming":
        connection.sendall(BUSY)
        return
    if mode == "hangs" and broken:
        time.sleep(100_000)
    if mode == "crashes" and not request.startswith(b"GET "):
        sys.exit("that was no request")
    if not request.startswith(b"GET "):
        return
    if mode == "wrong" or (mode == "departs" and request.startswith(b"GET / HTTP/1.0")):
        connection.sendall(ANSWER.replace(b"Hello", b"Adieu"))
    else:
        connection.sendall(ANSWER)


def spread() -> None:
    """Leave its CPUs, which is for this thread alone."""
    os.sched_setaffinity(0, range(os.cpu_count()))
    time.sleep(100_000)


def main(mode: str, address: str, port: str) -> None:
    if mode == "exits":
        sys.exit("no such luck")
    if mode == "forks":
        subprocess.Popen([sys.executable, __file__, "silent", address, port])
        sys.exit()
    if mode == "silent":
        time.sleep(100_000)
    if mode == "greedy":
        os.sched_setaffinity(0, range(os.cpu_count()))
    if mode == "departs":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if mode == "taken":
        # Its own helper holds the port.
        subprocess.Popen([sys.executable, __file__, "ok", address, port])
        while socket.socket().connect_ex((address, int(port))):
            time.sleep(0.01)
    if mode == "grows":
        # It talks, too, before it breaks.
        for number in range(FLOOD_BYTES // 100):
            print(f"{number:99}")
        print("that is all", flush=True)
    if mode == "elsewhere":
        port = "0"
    if mode == "leaves":
        subprocess.Popen(["sleep", "1000"], start_new_session=True)
    listener = socket.create_server((address, int(port)), backlog=4096)
    serve(mode, listener)


if __name__ == "__main__":
    main(*sys.argv[1:])
