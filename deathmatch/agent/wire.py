"""The format of messages on the channel."""

import base64
import json
from typing import Any

HELLO = b'{"hello": "deathmatch agent"'
"""The beginning of the agent's first line; a login shell may print others before it."""

REFUSAL = b'{"refused": '
"""The beginning of that line if the agent cannot work there."""

SILENCE_S = 4.0
"""How long each end waits for a message before it considers the other lost."""

PING_S = 0.5
"""How often the controller sends a ping."""

CHUNK_BYTES = 1 << 18
"""The most bytes of a file in one message: on a slow link, a ping waits for it."""


def line(message: dict[str, Any]) -> bytes:
    """Return the message as one line."""
    return json.dumps(message).encode() + b"\n"


def message(text: bytes) -> dict[str, Any]:
    """Return the message in a line; raise ValueError if it is not one."""
    try:
        decoded = json.loads(text)
    except RecursionError:
        raise ValueError(f"no message: {text[:80]!r}") from None
    if not isinstance(decoded, dict):
        raise ValueError(f"no message: {text[:80]!r}")
    return decoded


def pack(data: bytes) -> str:
    """Return bytes as text for a message."""
    return base64.b64encode(data).decode()


def unpack(text: str) -> bytes:
    """Return the bytes of a text that `pack` made."""
    return base64.b64decode(text)
