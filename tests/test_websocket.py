"""The WebSocket checks pass a correct server and report each rule that a wrong one breaks."""

import base64
import contextlib
import hashlib
import re
import socket
import struct
import threading

import pytest

from deathmatch.measure import conformance
from deathmatch.plan import files

CHECKS = [check.as_written for check in files.experiment("c10k").conformance]
CONTINUED, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10


class Server:
    """A WebSocket echo written out by hand, so that it can break any one rule."""

    def __init__(self, fault: str = ""):
        self.fault, self.served = fault, 0
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        # Closing alone would not wake the thread that accepts.
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def accept(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection: socket.socket) -> None:
        ends = contextlib.suppress(OSError, EOFError)
        with connection, connection.makefile("rb") as reader, ends:
            if self.upgrade(connection, reader):
                self.echo(connection, reader)

    def upgrade(self, connection: socket.socket, reader) -> bool:
        head = b""
        while (line := reader.readline()) not in (b"\r\n", b""):
            head += line
        self.served += 1
        key = re.search(rb"(?i)sec-websocket-key: *(\S+)", head)
        if not key:
            if self.fault == "dies of a plain request" and head:
                self.end()
            return False
        if self.fault == "serves 40 connections" and self.served > 40:
            return False
        digest = hashlib.sha1(key[1] + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
        accept = b"wrong" if self.fault == "wrong accept key" else base64.b64encode(digest)
        extension = b"Sec-WebSocket-Extensions: permessage-deflate\r\n"
        if self.fault == "hints first":
            for piece in (
                b"HTTP/1.1 103 Early",
                b" Hints\r\nLink: <a>\r\n\r\nHTTP/1.1 102 X\r\n\r\n",
            ):
                connection.sendall(piece)
        connection.sendall(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + (extension if self.fault == "compresses unasked" else b"")
            + b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n"
        )  # fmt: skip
        return True

    def echo(self, connection: socket.socket, reader) -> None:
        kind, parts = BINARY, []
        while True:
            opcode, fin, masked, data = frame(reader)
            if not masked and self.fault != "takes unmasked frames":
                if self.fault != "ignores unmasked frames":
                    return
            elif opcode == PING:
                if self.fault != "answers no ping":
                    most = 100 if self.fault == "cuts a pong" else None
                    connection.sendall(self.framed(PONG, data[:most]))
            elif opcode == CLOSE:
                if self.fault == "ends without a close":
                    return
                code = b"\x03\xf3" if self.fault == "closes with another code" else data
                connection.sendall(self.framed(CLOSE, code))
                if self.fault == "stays open after its close":
                    reader.read()
                return
            else:
                kind = kind if opcode == CONTINUED else opcode
                parts.append(data)
                if fin or self.fault == "answers each fragment":
                    self.reply(connection, kind, b"".join(parts))
                    parts = []

    def reply(self, connection: socket.socket, kind: int, data: bytes) -> None:
        if self.fault == "drops empty messages" and not data:
            return
        if self.fault == "binary comes back as text":
            kind = TEXT
        if self.fault == "turns a byte":
            data = data[:-1] + b"?"
        for _ in range(2 if self.fault == "answers twice" else 1):
            connection.sendall(self.framed(kind, data))

    def framed(self, opcode: int, data: bytes) -> bytes:
        mask = 0x80 if self.fault == "masks its frames" else 0
        longer = self.fault == "2 bytes of length" and opcode in (BINARY, TEXT)
        if len(data) < 126 and not longer:
            head = struct.pack("!BB", 0x80 | opcode, mask | len(data))
        elif len(data) < 65536:
            head = struct.pack("!BBH", 0x80 | opcode, mask | 126, len(data))
        else:
            head = struct.pack("!BBQ", 0x80 | opcode, mask | 127, len(data))
        return head + (bytes(4) if mask else b"") + data


def frame(reader) -> tuple[int, bool, bool, bytes]:
    """Read one frame: opcode, fin, whether it was masked, unmasked payload."""
    first, second = exactly(reader, 2)
    size = second & 0x7F
    if size > 125:
        size = int.from_bytes(exactly(reader, 2 if size == 126 else 8))
    key = exactly(reader, 4) if second & 0x80 else bytes(4)
    data = exactly(reader, size)
    mask = (key * (size // 4 + 1))[:size]
    data = (int.from_bytes(data) ^ int.from_bytes(mask)).to_bytes(size)
    return first & 0x0F, bool(first & 0x80), bool(second & 0x80), data


def exactly(reader, size: int) -> bytes:
    data = reader.read(size)
    if len(data) < size:
        raise EOFError
    return data


def failures(server: Server) -> dict[str, str]:
    """Return the failed checks of the experiment, and of 100 connections, with what they saw."""
    found = conformance.check("127.0.0.1", server.port, CHECKS)
    found.append(conformance.check_concurrent("127.0.0.1", server.port, CHECKS[0], 100))
    return {check.name: check.seen for check in found if not check.ok}


@pytest.mark.parametrize("habit", ["", "hints first"])
def test_a_right_server_passes(habit):
    with Server(habit) as server:
        assert failures(server) == {}


# The check that must report each fault, and its words.
FAULTS = {
    "wrong accept key": ("33 bytes, binary", "invalid Sec-WebSocket-Accept header: wrong"),
    "compresses unasked": ("33 bytes, binary", "no extensions supported"),
    "2 bytes of length": (
        "33 bytes, binary", "its length of 33 in 2 bytes, not in its shortest form (RFC 6455, 5.2)",
    ),
    "masks its frames": ("33 bytes, binary", "incorrect masking"),
    "binary comes back as text": ("33 bytes, binary", "messages 1: text b'xxx"),
    "turns a byte": ("33 bytes, binary", "x?', expected binary b'xxx"),
    "answers twice": ("many messages at once, in order", "messages 2: binary b'0', expected"),
    "drops empty messages": (
        "an empty message of either kind", "nothing more came after 0 of 2 messages",
    ),
    "answers each fragment": ("a message in three fragments", "messages 1: text b'one, '"),
    "answers no ping": ("a ping between fragments", "after 1 of 1 messages and 0 of 1 pongs"),
    "cuts a pong": ("a ping is answered, and messages after it", "pongs 2: "),
    "ends without a close": ("the closing handshake", "ended after 0 of 1 closes"),
    "closes with another code": ("the closing handshake", "close 1011, expected close 1000"),
    "stays open after its close": (
        "the closing handshake", "stays open after the closing handshake",
    ),
    "takes unmasked frames": ("an unmasked frame is refused", "it was answered: binary b'bare'"),
    "ignores unmasked frames": ("an unmasked frame is refused", "the connection stays open"),
    "dies of a plain request": ("100 connections at once", "with 0 open: [Errno"),
    "serves 40 connections": ("100 connections at once", "open: did not receive"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_rule_is_reported(fault, monkeypatch):
    monkeypatch.setattr(conformance, "TIMEOUT_S", 2)
    check, words = FAULTS[fault]
    with Server(fault) as server:
        told = failures(server)
    assert words in told.get(check, ""), told
    # The other checks pass.
    assert len(told) < len(CHECKS) or fault in ("wrong accept key", "compresses unasked")


def test_no_server_and_one_that_never_answers(monkeypatch):
    monkeypatch.setattr(conformance, "TIMEOUT_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        (silent,) = conformance.check("127.0.0.1", port, CHECKS[:1])
        assert silent.seen.startswith("TimeoutError")
    (absent,) = conformance.check("127.0.0.1", port, CHECKS[:1])
    assert absent.seen.startswith("ConnectionRefusedError")
