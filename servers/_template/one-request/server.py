"""The least that passes `backlog` and `single-thread`: server.py HOST PORT BACKLOG."""

import asyncio
import sys

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\nConnection: close\r\n\r\nHello, world"


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        request = await reader.readuntil(b"\r\n\r\n")
        if request.startswith(b"GET "):
            writer.write(ANSWER)
            await writer.drain()
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
        pass
    finally:
        writer.close()


async def main() -> None:
    host, port, backlog = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    server = await asyncio.start_server(answer, host, port, backlog=backlog)
    await server.serve_forever()


asyncio.run(main())
