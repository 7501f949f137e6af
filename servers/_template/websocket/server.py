"""The least that passes `c10k`, an echo of each message: server.py HOST PORT BACKLOG."""

import asyncio
import contextlib
import sys

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed


async def echo(connection: ServerConnection) -> None:
    with contextlib.suppress(ConnectionClosed):
        async for message in connection:
            await connection.send(message)


async def main() -> None:
    host, port, backlog = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    options = {"backlog": backlog, "open_timeout": None, "ping_interval": None, "compression": None}
    async with serve(echo, host, port, **options) as server:
        await server.serve_forever()


asyncio.run(main())
