"""websockets: a WebSocket server that sends every message back.

serve.py ADDRESS PORT BACKLOG PROCESSES
"""

import asyncio
import contextlib
import os
import socket
import sys

from websockets.asyncio.server import ServerConnection
from websockets.asyncio.server import serve as listen
from websockets.exceptions import ConnectionClosed


async def echo(connection: ServerConnection) -> None:
    # Sending raises once the client has closed, receiving where it goes away without that.
    with contextlib.suppress(ConnectionClosed):
        async for message in connection:
            await connection.send(message)


async def serve(listener: socket.socket, backlog: int) -> None:
    async with listen(
        echo,
        sock=listener,
        backlog=backlog,
        compression=None,
        open_timeout=None,
        ping_interval=None,
    ) as server:
        await server.serve_forever()


if __name__ == "__main__":
    address, port, backlog, processes = sys.argv[1:]
    listener = socket.create_server((address, int(port)), backlog=int(backlog))
    # All processes accept from one queue.
    for _ in range(int(processes) - 1):
        if os.fork() == 0:
            break
    asyncio.run(serve(listener, int(backlog)))
