"""A server with one fault that libraries of HTTP and WebSocket overlook: faulty.py FAULT PORT.

It listens on the loopback address and prints a line when it does.

early-hints   each answer is preceded by "103 Early Hints"
varies        every second body is a byte longer
upgrades      its upgrade says "Connection: keep-alive, Upgrade"
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


def answer(head: bytes) -> bytes:
    if FAULT in ("upgrades", "refuses"):
        return upgrade(head)
    body = b"Hello" + b"!" * (FAULT == "varies" and next(NUMBERS) % 2)
    hints = b"HTTP/1.1 103 Early Hints\r\n\r\n" if FAULT == "early-hints" else b""
    return hints + b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


def upgrade(head: bytes) -> bytes:
    if FAULT == "refuses":
        return b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"
    (key,) = (line.split(b":", 1)[1].strip() for line in head.split(b"\r\n")
              if line.lower().startswith(b"sec-websocket-key"))  # fmt: skip
    accepted = base64.b64encode(hashlib.sha1(key + KEY).digest())
    return (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: keep-alive, "
            b"Upgrade\r\nSec-WebSocket-Accept: " + accepted + b"\r\n\r\n")  # fmt: skip


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            writer.write(answer(await reader.readuntil(b"\r\n\r\n")))
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
        writer.close()


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", PORT)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
