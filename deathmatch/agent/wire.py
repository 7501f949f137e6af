"""How both ends write what goes over the channel."""

import base64
import json
from typing import Any

HELLO = b'{"hello": "deathmatch agent"'
"""How the first line begins that is the agent's: a login shell may print others before."""

REFUSAL = b'{"refused": '
"""How it begins if the agent cannot work there."""

SILENCE_S = 4.0
"""How long either end waits for a sign of the other before it takes it for gone."""

PING_S = 0.5
"""How often the controller gives a sign, and asks for one."""

CHUNK_BYTES = 1 << 18
"""How much of a file one message carries: a ping waits behind it on a slow link."""


def line(message: dict[str, Any]) -> bytes:
    """Return the message as one line."""
    return json.dumps(message).encode() + b"\n"


def message(text: bytes) -> dict[str, Any]:
    """Return the message of a line; ValueError if it is not one."""
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
    """Return the bytes of `pack`."""
    return base64.b64decode(text)
