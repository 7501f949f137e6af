"""Measure the link between two hosts over one TCP connection: run on each, by its own Python.

`serve ADDRESS` prints the port that it listens on, serves one caller and ends. `call ADDRESS PORT
SECONDS` prints JSON: round trips in ns, the bytes that arrived and in which time, the path's MTU
and the segments that were sent again. Half of SECONDS is for round trips, half for bytes, however
slow the link is. It needs nothing but the standard library and no root.
"""

import contextlib
import json
import select
import socket
import struct
import sys
import time

PATIENCE_S = 5
BLOCK_BYTES = 1 << 18
ROUND_TRIPS = 1000
PING, BULK = b"p", b"b"
# For how many ns bytes are counted; how many came, in how many ns.
WANTED, COUNTED = struct.Struct("!Q"), struct.Struct("!QQ")
# linux/in.h; Python's module lacks it.
IP_MTU = 14
TCP_INFO_BYTES, TOTAL_RETRANS_AT = 104, 100
DISCARD = struct.pack("ii", 1, 0)


def serve(address):
    """Answer one caller: a byte for a byte, then a count of what came in the time it asked for."""
    with socket.create_server((address, 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        listener.settimeout(PATIENCE_S)
        caller, _ = listener.accept()
    with caller:
        caller.settimeout(PATIENCE_S)
        caller.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while caller.recv(1) == PING:
            caller.sendall(PING)
        wanted_ns = WANTED.unpack(caller.recv(WANTED.size, socket.MSG_WAITALL))[0]
        received, took_ns, buffer = 0, 0, bytearray(BLOCK_BYTES)
        began_ns = time.monotonic_ns()
        while took_ns < wanted_ns and (count := caller.recv_into(buffer)):
            received += count
            took_ns = time.monotonic_ns() - began_ns
        caller.sendall(COUNTED.pack(received, took_ns))
        # The caller ends it once it has read that, and discards what is still on the way.
        with contextlib.suppress(ConnectionError):
            while caller.recv_into(buffer):
                pass


def call(address, port, seconds):
    """Return the round trips, and what arrived in which time."""
    with socket.create_connection((address, port), timeout=PATIENCE_S) as server:
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, DISCARD)
        trips_ns, ends = [], time.monotonic() + seconds / 2
        while not trips_ns or (len(trips_ns) < ROUND_TRIPS and time.monotonic() < ends):
            began_ns = time.monotonic_ns()
            server.sendall(PING)
            if not server.recv(1):
                raise ConnectionError("the server ended the connection")
            trips_ns.append(time.monotonic_ns() - began_ns)
        server.sendall(BULK + WANTED.pack(round(seconds / 2 * 1e9)))
        send_until_answered(server, time.monotonic() + seconds / 2 + PATIENCE_S)
        received, took_ns = COUNTED.unpack(server.recv(COUNTED.size, socket.MSG_WAITALL))
        known = server.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
        return {
            "round_trips_ns": trips_ns,
            "received_bytes": received,
            "took_ns": took_ns,
            "path_mtu_bytes": server.getsockopt(socket.IPPROTO_IP, IP_MTU),
            "retransmitted_segments": struct.unpack_from("I", known, TOTAL_RETRANS_AT)[0],
        }


def send_until_answered(server, deadline):
    """Send as much as goes until the other side says something."""
    block = bytes(BLOCK_BYTES)
    server.setblocking(False)
    while time.monotonic() < deadline:
        said, ready, _ = select.select([server], [server], [], PATIENCE_S)
        if said:
            break
        if ready:
            with contextlib.suppress(BlockingIOError):
                server.send(block)
    server.settimeout(PATIENCE_S)


if __name__ == "__main__":
    try:
        if sys.argv[1] == "serve":
            serve(sys.argv[2])
        else:
            json.dump(call(sys.argv[2], int(sys.argv[3]), float(sys.argv[4])), sys.stdout)
    except (OSError, struct.error) as error:
        json.dump({"failed": f"{error}"}, sys.stdout)
