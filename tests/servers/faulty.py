"""A server with one habit that a load generator may get wrong: faulty.py HABIT PORT.

It listens on the loopback address and prints a line when it does.

Wrong, of answers number 19, 39, …, counted from 0:

other         has another body of the same length
first-letter  the same, but for all after the first letter
longer        is a byte longer
twice         is sent twice
unasked       is followed by a byte that is no answer
created       has status 201

Right:

odd           answers differ in all but status and body: some are preceded by "103 Early Hints",
              some are chunked, with a Content-Length too, some are of HTTP/1.0 that keeps the
              connection; a header gets shorter with each of a connection, which ends after ten
varies        every second body is a byte longer

Of WebSocket:

early-upgrade its upgrade says "keep-alive, Upgrade" and is preceded by "103 Early Hints"
refuses       refuses every upgrade
"""

import asyncio
import base64
import hashlib
import sys
from itertools import count

KEY = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, 1.3
FAULT, PORT = sys.argv[1], int(sys.argv[2])
NUMBERS = count()


HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n"
BODY = b"Hello, world"
FAULTY_BODIES = {"other": b"Sorry, busy!", "first-letter": b"Jello, world", "longer": BODY + b"!"}


def answer(head: bytes, left: int) -> bytes:
    """Return the answer to a request that `left` may follow on its connection."""
    if FAULT in ("refuses", "early-upgrade"):
        return upgrade(head)
    number = next(NUMBERS)
    faulty = number % 20 == 19
    body = FAULTY_BODIES.get(FAULT, BODY) if faulty else BODY
    body += b"!" * (FAULT == "varies" and number % 2)
    status = b"201 Created" if faulty and FAULT == "created" else b"200 OK"
    version, headers = b"1.1", b"Content-Length: %d\r\n" % len(body)
    if FAULT == "odd":
        last = b"connection: a, Close\r\n"
        headers += b"Keep-Alive: timeout=5, max=%d\r\n" % left if left else last
        if number % 4 == 2:
            headers += b"Transfer-Encoding: chunked \r\n"
            body = b"5\r\nHello\r\n7;x=y\r\n, world\r\n0\r\n\r\n"
        elif number % 4 == 3:
            version = b"1.0"
            headers += b"Connection: keep-alive\r\n" if left else b""
    whole = b"HTTP/%b %b\r\n%b\r\n%b" % (version, status, headers, body)
    if faulty and FAULT in ("twice", "unasked"):
        whole += whole if FAULT == "twice" else b"!"
    return (HINTS if FAULT == "odd" and number % 5 == 4 else b"") + whole


def upgrade(head: bytes) -> bytes:
    if FAULT == "refuses":
        return b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"
    (key,) = (line.split(b":", 1)[1].strip() for line in head.split(b"\r\n")
              if line.lower().startswith(b"sec-websocket-key"))  # fmt: skip
    accepted = base64.b64encode(hashlib.sha1(key + KEY).digest())
    head = (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: keep-alive, "
            b"Upgrade\r\nSec-WebSocket-Accept: " + accepted + b"\r\n\r\n")  # fmt: skip
    return HINTS + head


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        for left in count(9, -1):
            writer.write(answer(await reader.readuntil(b"\r\n\r\n"), left))
            if FAULT == "odd" and left == 0:
                break
            while FAULT == "early-upgrade":
                head = await reader.readexactly(6)
                data = await reader.readexactly(head[1] & 127)
                plain = bytes(byte ^ head[2 + at % 4] for at, byte in enumerate(data))
                writer.write(bytes([head[0], len(data)]) + plain)
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
        pass
    writer.close()


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", PORT)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
