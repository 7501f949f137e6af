"""Measure the link between two hosts over one TCP connection: run on each, by its own Python.

`serve ADDRESS` prints the port that it listens on, serves one caller and ends. `call ADDRESS PORT
SECONDS` prints JSON: round trips in ns, the bytes that arrived and in which time, the path's MTU
and the segments that were sent again. Half of SECONDS is for round trips, half for bytes. It needs
nothing but the standard library and no root.
"""

import json
import socket
import struct
import sys
import time

PATIENCE_S = 5
BLOCK_BYTES = 1 << 18
ROUND_TRIPS = 1000
# linux/in.h; Python's module lacks it.
IP_MTU = 14
TCP_INFO_BYTES, TOTAL_RETRANS_AT = 104, 100
PING, BULK = b"p", b"b"


def serve(address):
    """Answer one caller: a byte for a byte, then a count for all that it sent."""
    with socket.create_server((address, 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        listener.settimeout(PATIENCE_S)
        caller, _ = listener.accept()
    with caller:
        caller.settimeout(PATIENCE_S)
        caller.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while caller.recv(1) == PING:
            caller.sendall(PING)
        received, buffer = 0, bytearray(BLOCK_BYTES)
        while count := caller.recv_into(buffer):
            received += count
        caller.sendall(struct.pack("!Q", received))


def call(address, port, seconds):
    """Return the round trips, and what arrived in which time."""
    with socket.create_connection((address, port), timeout=PATIENCE_S) as server:
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        trips_ns, ends = [], time.monotonic() + seconds / 2
        while len(trips_ns) < ROUND_TRIPS and time.monotonic() < ends:
            began_ns = time.monotonic_ns()
            server.sendall(PING)
            server.recv(1)
            trips_ns.append(time.monotonic_ns() - began_ns)
        server.sendall(BULK)
        block, began_ns = bytes(BLOCK_BYTES), time.monotonic_ns()
        ends = time.monotonic() + seconds / 2
        while time.monotonic() < ends:
            server.sendall(block)
        server.shutdown(socket.SHUT_WR)
        # Only what has arrived has been carried.
        received = struct.unpack("!Q", server.recv(8, socket.MSG_WAITALL))[0]
        took_ns = time.monotonic_ns() - began_ns
        known = server.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
        return {
            "round_trips_ns": trips_ns,
            "received_bytes": received,
            "took_ns": took_ns,
            "path_mtu_bytes": server.getsockopt(socket.IPPROTO_IP, IP_MTU),
            "retransmitted_segments": struct.unpack_from("I", known, TOTAL_RETRANS_AT)[0],
        }


if __name__ == "__main__":
    try:
        if sys.argv[1] == "serve":
            serve(sys.argv[2])
        else:
            json.dump(call(sys.argv[2], int(sys.argv[3]), float(sys.argv[4])), sys.stdout)
    except (OSError, struct.error) as error:
        json.dump({"failed": f"{error}"}, sys.stdout)
