"""One end of many connections: `python -m deathmatch.instruments.connections.end`.

Each line of standard input is a JSON list, [verb, {argument: value}]; each is answered by a line:
{"done": N}, or {"failed": why}. All ends with the process. The standard library only, as a
connection is to cost it little.
"""

import contextlib
import errno
import json
import os
import select
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator

from deathmatch.hosts import kernel

# As many as a process may have where the limit can be raised.
DESCRIPTORS = 1 << 20
# ip(7); Python has no name for it before 3.12.
IP_BIND_ADDRESS_NO_PORT = 24
# What one wait takes from the kernel at most.
EVENTS = 4096
PATIENCE_S = 120
# SYNs that are sent in a row, and the pause after them.
AT_ONCE, PAUSE_S = 250, 0.002
FIRST_PORT = 1024
PORTS = 64_512
_REQUEST = b"?"
_SYN = 0x02


class End:
    """What one process holds, and its verbs: every public method."""

    def __init__(self) -> None:
        self._descriptors = kernel.raise_descriptors(DESCRIPTORS)
        self._listener: socket.socket | None = None
        self._held: list[socket.socket] = []
        self._poll = select.epoll()

    def descriptors(self) -> int:
        """Return how many files it may have open."""
        return self._descriptors

    def listen(self, address: str, port: int, connections: int) -> int:
        """Listen with a backlog for that many; nothing is accepted yet."""
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind((address, port))
        self._listener.listen(connections)
        return 0

    def connect(
        self, address: str, port: int, sources: list[str], connections: int, wait: bool = True
    ) -> int:
        """Open connections, as many from each source; return how many are established.

        Without `wait`, return how many have sent their SYN.
        """
        for number in range(connections):
            opened = socket.socket()
            opened.setblocking(False)
            opened.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
            opened.bind((sources[number % len(sources)], 0))
            with contextlib.suppress(BlockingIOError):
                opened.connect((address, port))
            self._held.append(opened)
        if wait:
            self._each(self._held, select.EPOLLOUT, self._connected)
        return len(self._held)

    def accept(self, connections: int) -> int:
        """Accept that many, and watch each as a server with an event loop does."""
        self._listener.settimeout(PATIENCE_S)
        for _ in range(connections):
            accepted, _ = self._listener.accept()
            accepted.setblocking(False)
            self._held.append(accepted)
            self._poll.register(accepted, select.EPOLLIN)
        return len(self._held)

    def watch(self) -> int:
        """Watch each connection, as a client with an event loop does."""
        for connection in self._held:
            self._poll.register(connection, select.EPOLLIN)
        return len(self._held)

    def send(self, size: int) -> int:
        """Send that many bytes on each connection."""
        message = _REQUEST * size
        for connection in self._held:
            connection.send(message)
        return len(self._held)

    def receive(self, size: int) -> int:
        """Receive that many bytes on each connection."""
        left = {connection.fileno(): size for connection in self._held}

        def read(connection: socket.socket) -> bool:
            left[connection.fileno()] -= len(connection.recv(left[connection.fileno()]))
            return left[connection.fileno()] == 0

        self._each(self._held, select.EPOLLIN, read)
        return len(self._held)

    def half_open(self, address: str, port: int, sources: list[str], connections: int) -> int:
        """Send SYNs from addresses that answer nothing, by a raw socket; return how many."""
        raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        for number, packet in enumerate(syns(address, port, sources, connections)):
            self._until_taken(raw, packet, address)
            # The other end's kernel drops what it has no time to take (netdev_max_backlog).
            if number % AT_ONCE == AT_ONCE - 1:
                time.sleep(PAUSE_S)
        return connections

    def _until_taken(self, raw: socket.socket, packet: bytes, address: str) -> None:
        while True:
            try:
                raw.sendto(packet, (address, 0))
                return
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                os.sched_yield()

    def close(self) -> int:
        """Close all connections; return how many."""
        count = len(self._held)
        for connection in self._held:
            connection.close()
        self._held.clear()
        return count

    def _connected(self, connection: socket.socket) -> bool:
        if problem := connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise OSError(problem, os.strerror(problem))
        return True

    def _each(
        self, sockets: list[socket.socket], event: int, done: Callable[[socket.socket], bool]
    ) -> None:
        """Call `done` on each socket when it has the event, until it returns True for each."""
        waiting = {opened.fileno(): opened for opened in sockets}
        with select.epoll() as poll:
            for descriptor in waiting:
                poll.register(descriptor, event)
            while waiting:
                ready = poll.poll(PATIENCE_S, EVENTS)
                if not ready:
                    raise TimeoutError(f"{len(waiting)} of {len(sockets)} did not come about")
                for descriptor, _ in ready:
                    if done(waiting[descriptor]):
                        poll.unregister(descriptor)
                        del waiting[descriptor]


def syns(address: str, port: int, sources: list[str], count: int) -> Iterator[bytes]:
    """Return IPv4 packets that ask for a connection (RFC 9293, 3.1), each from another end.

    The kernel fills in length, identification and checksum of the IP header (raw(7)).
    """
    target = socket.inet_aton(address)
    for number in range(count):
        source = socket.inet_aton(sources[number // PORTS])
        own = FIRST_PORT + number % PORTS
        header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 0, 0, 0, 64, 6, 0, source, target)
        pseudo = source + target + struct.pack("!BBH", 0, socket.IPPROTO_TCP, 20)
        begin = struct.pack("!HHIIBBH", own, port, number, 0, 5 << 4, _SYN, 65535)
        total = sum(struct.unpack("!16H", pseudo + begin + bytes(4)))
        total = (total & 0xFFFF) + (total >> 16)
        total = (total & 0xFFFF) + (total >> 16)
        yield header + begin + struct.pack("!HH", ~total & 0xFFFF, 0)


def answered(end: End, line: str) -> dict:
    """Return the answer to a line of standard input."""
    verb, arguments = json.loads(line)
    try:
        return {"done": getattr(end, verb)(**arguments)}
    except OSError as error:
        return {"failed": f"{verb}: {error.strerror or error}"}


def main() -> None:
    """Do what standard input says until it ends."""
    end = End()
    for line in sys.stdin:
        print(json.dumps(answered(end, line)), flush=True)


if __name__ == "__main__":
    main()
