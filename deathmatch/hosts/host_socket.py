"""A TCP connection that a host opens for the caller, over the link that the host is on.

What is sent and received crosses the channel to the agent too: for checks, never for load.
"""

import itertools

from deathmatch.agent import wire
from deathmatch.hosts.connection import Connection

_numbers = itertools.count()


class HostSocket:
    """The part of socket.socket that checks use; its errors are those of the host's socket."""

    def __init__(self, agent: Connection, address: str, port: int, patience_s: float):
        self._agent, self._patience_s = agent, patience_s
        self._number = next(_numbers)
        self._agent.call(
            "connect", number=self._number, address=address, port=port, patience_s=patience_s
        )
        self._open = True

    def settimeout(self, patience_s: float) -> None:
        """Wait that long for what is sent or received from now on; TimeoutError after it."""
        self._patience_s = patience_s

    def sendall(self, data: bytes) -> None:
        """Send all of it."""
        for start in range(0, len(data), wire.CHUNK_BYTES):
            part = data[start : start + wire.CHUNK_BYTES]
            self._agent.call(
                "transmit", number=self._number, data=wire.pack(part), patience_s=self._patience_s
            )

    def recv(self, limit_bytes: int) -> bytes:
        """Return what comes next, nothing at the end."""
        answer = self._agent.call(
            "receive", number=self._number, limit_bytes=limit_bytes, patience_s=self._patience_s
        )
        return wire.unpack(answer["data"])

    def close(self) -> None:
        """Close it, if it is open."""
        if self._open:
            self._open = False
            self._agent.call("hang_up", number=self._number)

    def __enter__(self) -> "HostSocket":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
