"""The least that passes `dynamic`, with many requests a connection: server.py HOST PORT BACKLOG."""

import asyncio
import sys
from urllib.parse import parse_qs, urlsplit
from xml.sax.saxutils import escape

FORM = "HTTP/1.1 {status}\r\nContent-Type: text/xml\r\nContent-Length: {length}\r\n{more}\r\n{body}"


def page(target: str) -> str:
    values = parse_qs(urlsplit(target).query).get("value")
    answer = (
        f"<value>{escape(values[0])}</value>" if values else "<error>no value specified</error>"
    )
    return f"<http_test>{answer}</http_test>"


def answer_to(request: str) -> tuple[bytes, bool]:
    """Return the answer, and whether the connection ends with it."""
    line, *headers = request.lower().splitlines()
    # HTTP/1.0 closes unless asked not to, HTTP/1.1 the other way round.
    ends = "connection: close" in headers or (
        line.endswith("http/1.0") and "connection: keep-alive" not in headers
    )
    try:
        method, target, _ = request.splitlines()[0].split(" ")
        body, status = page(target), "200 OK" if method == "GET" else "405 Method Not Allowed"
    except ValueError:
        body, status, ends = "", "400 Bad Request", True
    more = "Connection: close\r\n" if ends else ""
    text = FORM.format(status=status, length=len(body.encode()), more=more, body=body)
    return text.encode(), ends


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        ends = False
        while not ends:
            request = await reader.readuntil(b"\r\n\r\n")
            answer, ends = answer_to(request.decode("latin-1"))
            writer.write(answer)
            await writer.drain()
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
        pass
    finally:
        writer.close()


async def main() -> None:
    host, port, backlog = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    server = await asyncio.start_server(serve, host, port, backlog=backlog)
    await server.serve_forever()


asyncio.run(main())
