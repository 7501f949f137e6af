"""A host's TCP sockets, listed by the kernel's sock_diag(7), as in ss(8).

It needs no process. The layouts are those of linux/netlink.h and linux/inet_diag.h.
"""

import errno
import os
import socket
import struct
import sys
from collections.abc import Iterator
from typing import NamedTuple

ESTABLISHED, SYN_RECEIVED, TIME_WAIT, LISTENING = 1, 3, 6, 10
"""The kernel's numbers of states (net/tcp_states.h)."""

_NETLINK_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY = 4, 20
_REQUEST_DUMP = 0x001 | 0x300
_ERROR, _DONE = 2, 3
_HEADER = struct.Struct("=IHHII")
# Family, protocol, extensions, padding, states; then the identity of the wanted socket.
_REQUEST = struct.Struct("=BBBBI")
_IDENTITY = struct.Struct("!HH16s16s12s")
_QUEUES = struct.Struct("=III")
_QUEUES_AT = 4 + _IDENTITY.size
_BUFFER_BYTES = 1 << 18
# A message ends on a boundary of 4 bytes.
_ALIGNED = 4


class Listener(NamedTuple):
    """A listening socket: its address and port, its accept queue's length and limit."""

    address: str
    waiting: int
    limit: int


def count(state: int, port: int) -> int:
    """Return how many sockets of that local port are in a state.

    The kernel reads all of its connections: 10,000 take some milliseconds.
    """
    return sum(1 for _ in _sockets(state, port))


def listeners(port: int = 0) -> list[Listener]:
    """Return the listening sockets, default: of all ports."""
    return [listener(family, data) for family, data in _sockets(LISTENING, port)]


def listener(family: int, data: bytes) -> Listener:
    """Return the listener, given the kernel's answer for one socket."""
    port, _, source, _, _ = _IDENTITY.unpack_from(data, 4)
    _, waiting, limit = _QUEUES.unpack_from(data, _QUEUES_AT)
    if family == socket.AF_INET:
        return Listener(f"{socket.inet_ntop(family, source[:4])}:{port}", waiting, limit)
    return Listener(f"[{socket.inet_ntop(family, source)}]:{port}", waiting, limit)


def _sockets(state: int, port: int) -> Iterator[tuple[int, bytes]]:
    for family in (socket.AF_INET, socket.AF_INET6):
        identity = _IDENTITY.pack(port, 0, b"", b"", b"")
        wanted = _REQUEST.pack(family, socket.IPPROTO_TCP, 0, 0, 1 << state) + identity
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as kernel:
            length = _HEADER.size + len(wanted)
            head = _HEADER.pack(length, _SOCK_DIAG_BY_FAMILY, _REQUEST_DUMP, 1, 0)
            kernel.send(head + wanted)
            for data in _answers(kernel):
                yield family, data


def _answers(kernel: socket.socket) -> Iterator[bytes]:
    done = False
    while not done:
        sockets, done = parsed(kernel.recv(_BUFFER_BYTES))
        yield from sockets


def parsed(received: bytes) -> tuple[list[bytes], bool]:
    """Return the sockets in a received datagram, and whether they are the last.

    Raises OSError for an error in it, or if it is not netlink(7) messages.
    """
    sockets = []
    place = 0
    while place < len(received):
        head = received[place : place + _HEADER.size]
        length, kind, _, _, _ = _HEADER.unpack(head.ljust(_HEADER.size, b"\0"))
        if not _HEADER.size <= length <= len(received) - place:
            raise OSError(errno.EBADMSG, f"sock_diag: a message of {length} bytes is not whole")
        if kind == _DONE:
            return sockets, True
        data = received[place + _HEADER.size : place + length]
        if kind == _ERROR:
            number = -int.from_bytes(data[:4], sys.byteorder, signed=True)
            # A kernel without that family has no such sockets.
            if number in (errno.ENOENT, errno.EAFNOSUPPORT):
                return sockets, True
            if number <= 0:
                raise OSError(errno.EBADMSG, f"sock_diag: no error has the number {number}")
            raise OSError(number, f"sock_diag: {os.strerror(number)}")
        if len(data) < _QUEUES_AT + _QUEUES.size:
            raise OSError(errno.EBADMSG, "sock_diag: a socket's message is too short")
        sockets.append(data)
        place += -(-length // _ALIGNED) * _ALIGNED
    return sockets, False
