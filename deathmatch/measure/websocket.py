"""Check that a WebSocket server answers frames as RFC 6455 and an echo require; for `conformance`.

The package `websockets` implements the protocol, and detects a wrong upgrade, a masked frame,
reserved bits and invalid UTF-8. This module adds frames that no client may send, interim answers
before the upgrade, and the detection of lengths that are longer than necessary.
"""

import re
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from websockets.client import ClientProtocol
from websockets.exceptions import WebSocketException
from websockets.frames import Close, Frame, Opcode
from websockets.http11 import Response
from websockets.protocol import State
from websockets.uri import parse_uri

from deathmatch.hosts.host import Dial
from deathmatch.hosts.host import dial as here
from deathmatch.plan.experiment import spelled_out

# Larger than any message of an experiment, so that an endless message does not fill the memory.
LONGEST_MESSAGE_BYTES = 1_000_000
# The time limit for opening many connections, and for their answers.
ALL_S = 60
Item = TypeVar("Item")

# RFC 9110, 15.2: a client must take any number of them before the final answer.
INTERIM = re.compile(rb"\A(?:HTTP/1\.[01] 1(?!01)\d\d[^\n]*\n(?:[^\r\n][^\n]*\n)*\r?\n)+")
END_OF_HEAD = b"\r\n\r\n"
# RFC 6455, 5.2: {value of a frame's 7 bits of length: (how many bytes of length follow, the least
# length for which they may)}.
LONGER = {126: (2, 126), 127: (8, 65536)}

# {messages, pongs, closes: [(kind, data), …]}
Answers = dict[str, list]


def problem(address: str, port: int, request: dict, timeout_s: float, dial: Dial = here) -> str:
    """Return what is wrong with the answers to an experiment's `frames`; "" if nothing is.

    With `echoes`, every message must come back unchanged and of its kind, in order, every ping
    as a pong, and a close as a close and the connection's end; with `refuses`, the server must
    end the connection and send no message.
    """
    try:
        with Peer(address, port, timeout_s, dial) as peer:
            peer.send(request["frames"])
            return peer.answers_problem(request)
    except (OSError, WebSocketException) as error:
        return f"{type(error).__name__}: {error}"


def problem_at_once(
    address: str, port: int, request: dict, connections: int, timeout_s: float,
    dial: Dial = here,
) -> str:  # fmt: skip
    """Upgrade many connections, then send on each in reverse order; return as `problem` does."""
    peers: list[Peer] = []
    try:
        for _ in in_time(range(connections)):
            peers.append(Peer(address, port, timeout_s, dial))
        for peer in reversed(peers):
            peer.send(request["frames"])
        every = (peer.answers_problem(request) for peer in in_time(peers))
        return next(filter(None, every), "")
    except (OSError, WebSocketException) as error:
        return f"{type(error).__name__} with {len(peers)} open: {error}"
    finally:
        for peer in peers:
            peer.close()


def in_time(items: Iterable[Item]) -> Iterator[Item]:
    """Yield items one after another; raise TimeoutError once that has taken ALL_S."""
    deadline = time.monotonic() + ALL_S
    for item in items:
        if time.monotonic() > deadline:
            raise TimeoutError(f"not all within {ALL_S} s")
        yield item


class Peer:
    """An upgraded connection; raises OSError or WebSocketException without one in `timeout_s`."""

    def __init__(
        self, address: str, port: int, timeout_s: float, dial: Dial = here
    ):  # fmt: skip
        self.timeout_s = timeout_s
        uri = parse_uri(f"ws://{address}:{port}/")
        self._protocol = ClientProtocol(uri, max_size=LONGEST_MESSAGE_BYTES)
        self._socket = dial(address, port, timeout_s)
        self._ended = False
        self._received = b""
        try:
            self._protocol.send_request(self._protocol.connect())
            self._flush()
            self._deadline = time.monotonic() + timeout_s
            while not any(isinstance(event, Response) for event in self._events()):
                pass
            if self._protocol.handshake_exc:
                raise self._protocol.handshake_exc
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the TCP connection, whatever the protocol's state."""
        self._socket.close()

    def send(self, frames: list[dict]) -> None:
        """Send frames as an experiment describes them."""
        out = [
            Frame(_opcode(frame), _data(frame, number), fin=frame.get("fin", True)).serialize(
                mask=frame.get("masked", True)
            )
            for frame in frames
            for number in range(frame.get("repeat", 1))
        ]
        self._socket.sendall(b"".join(out))

    def answers_problem(self, request: dict) -> str:
        """Return what is wrong with what comes back within `timeout_s`."""
        expected = _expected(request["frames"])
        if request.get("refuses"):
            return self._refusal_problem()
        found: Answers = {"messages": [], "pongs": [], "closes": []}
        partial: list[Frame] = []
        self._deadline = time.monotonic() + self.timeout_s
        while any(len(found[kind]) < len(expected[kind]) for kind in found):
            if self._ended:
                return f"the connection ended {_short_of(found, expected)}"
            try:
                events = self._events()
            except TimeoutError:
                return f"nothing more came {_short_of(found, expected)}"
            for frame in events:
                _take(frame, partial, found)
        for kind, wanted in expected.items():
            for number, (back, sent) in enumerate(zip(found[kind], wanted), 1):
                if back != sent:
                    return f"{kind} {number}: {_shown(back)}, expected {_shown(sent)}"
            if len(found[kind]) > len(wanted):
                return f"{len(found[kind])} {kind}, expected {len(wanted)}"
        return self._end_problem() if expected["closes"] else ""

    def _refusal_problem(self) -> str:
        found: Answers = {"messages": [], "pongs": [], "closes": []}
        self._deadline = time.monotonic() + self.timeout_s
        while not self._ended and not found["closes"]:
            try:
                for frame in self._events():
                    _take(frame, [], found)
            except TimeoutError:
                return "the connection stays open"
            except OSError:
                break
            if found["messages"]:
                return f"it was answered: {_shown(found['messages'][0])}"
        return ""

    def _end_problem(self) -> str:
        try:
            while not self._ended:
                self._events()
        except TimeoutError:
            return "the connection stays open after the closing handshake"
        except ConnectionResetError:
            return "the connection was reset, not closed"
        return ""

    def _flush(self) -> None:
        self._socket.sendall(b"".join(self._protocol.data_to_send()))

    def _events(self) -> list:
        """Return the next events; raise OSError for a broken connection, or WebSocketException."""
        left_s = self._deadline - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("timed out")
        self._socket.settimeout(left_s)
        if data := self._socket.recv(65536):
            self._protocol.receive_data(self._without_interim(data))
        else:
            self._ended = True
            self._protocol.receive_eof()
            if self._protocol.handshake_exc:
                raise self._protocol.handshake_exc
        fault = self._protocol.parser_exc
        if fault and not isinstance(fault, EOFError):
            raise WebSocketException(str(fault)) from fault
        if self._protocol.state is not State.CONNECTING:
            self._received = _after_frames(self._received)
        return self._protocol.events_received()

    def _without_interim(self, data: bytes) -> bytes:
        """Return what the protocol may read; `_received` has what no whole frame has yet."""
        self._received += data
        if self._protocol.state is not State.CONNECTING:
            return data
        head, end, rest = INTERIM.sub(b"", self._received).partition(END_OF_HEAD)
        if not end:
            return b""
        self._received = rest
        return head + end + rest


def _after_frames(received: bytes) -> bytes:
    """Return what follows the whole frames; WebSocketException for a length that is too long."""
    while len(received) > 1:
        length = received[1] & 127
        size, least = LONGER.get(length, (0, 0))
        if len(received) < 2 + size:
            break
        length = int.from_bytes(received[2 : 2 + size]) if size else length
        if length < least:
            raise WebSocketException(
                f"a frame has its length of {length} in {size} bytes, not in its shortest form "
                "(RFC 6455, 5.2)"
            )
        if len(received) < 2 + size + length:
            break
        received = received[2 + size + length :]
    return received


def _opcode(frame: dict) -> Opcode:
    return Opcode[frame["opcode"].upper()]


def _data(frame: dict, number: int) -> bytes:
    """Return a frame's payload: {x*4000} stands for 4000 times x, {i} for its number."""
    if frame["opcode"] == "close":
        return Close(frame["code"], "").serialize()
    return spelled_out(frame["payload"].replace("{i}", str(number))).encode()


def _expected(frames: list[dict]) -> Answers:
    found: Answers = {"messages": [], "pongs": [], "closes": []}
    partial: list[Frame] = []
    for frame in frames:
        for number in range(frame.get("repeat", 1)):
            opcode = Opcode.PONG if frame["opcode"] == "ping" else _opcode(frame)
            sent = Frame(opcode, _data(frame, number), fin=frame.get("fin", True))
            _take(sent, partial, found)
    return found


def _take(frame: Frame, partial: list[Frame], found: Answers) -> None:
    """Sort a frame into what was found; `partial` holds the fragments of an unfinished message."""
    if frame.opcode == Opcode.PONG:
        found["pongs"].append(("pong", bytes(frame.data)))
    elif frame.opcode == Opcode.CLOSE:
        found["closes"].append(("close", bytes(frame.data)[:2]))
    elif frame.opcode != Opcode.PING:
        partial.append(frame)
        if frame.fin:
            whole = b"".join(bytes(part.data) for part in partial)
            found["messages"].append((partial[0].opcode.name.lower(), whole))
            partial.clear()


def _shown(answer: tuple[str, bytes]) -> str:
    kind, data = answer
    if kind == "close":
        return f"close {int.from_bytes(data)}" if data else "close without a code"
    return f"{kind} {data[:100]!r}{f' … ({len(data)} bytes)' if len(data) > 100 else ''}"


def _short_of(found: Answers, expected: Answers) -> str:
    missing = [
        f"{len(found[kind])} of {len(expected[kind])} {kind}" for kind in found if expected[kind]
    ]
    return f"after {' and '.join(missing)}"
