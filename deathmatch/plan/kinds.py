"""What a new server may be like, each with a folder of `servers/_template/`."""

KINDS = {
    "one-request": "one request a connection",
    "keep-alive": "several requests a connection",
    "websocket": "WebSocket",
}
"""The first is taken where none is asked for."""
