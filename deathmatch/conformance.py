"""Does a server answer an experiment's requests as it must, before it is timed?"""

import re
import socket
import subprocess

TIMEOUT_S = 5


def check(host: str, port: int, requests: list[dict]) -> list[dict]:
    """Send each request of an experiment's `conformance` table; return one result for each.

    A result has name, ok and seen (what was wrong; empty if ok). After a request without
    `status`, only a server that still accepts connections passes.
    """
    return [_check(host, port, request) for request in requests]


def check_backlog(port: int, backlog: int, somaxconn: int) -> dict:
    """Compare the kernel's view of the listening socket with min(backlog, somaxconn).

    ss(8) shows a listener's backlog as Send-Q; listen(2) tells of the cap.
    """
    expected = min(backlog, somaxconn)
    lines = subprocess.run(
        ["ss", "--no-header", "--listening", "--tcp", "--numeric", f"sport = :{port}"],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    seen = sorted({int(line.split()[2]) for line in lines})
    return {
        "name": f"listen backlog {backlog}, capped at {somaxconn}",
        "ok": seen == [expected],
        "seen": "" if seen == [expected] else f"the kernel has {seen}, expected {expected}",
    }


def _check(host: str, port: int, request: dict) -> dict:
    try:
        wrong = _wrong(host, port, request)
    except OSError as error:
        wrong = f"{type(error).__name__}: {error}"
    return {"name": request["name"], "ok": not wrong, "seen": wrong}


def _wrong(host: str, port: int, request: dict) -> str:
    with socket.create_connection((host, port), timeout=TIMEOUT_S) as connection:
        connection.sendall(request["send"].encode("latin-1"))
        if "status" not in request:
            connection.close()
            socket.create_connection((host, port), timeout=TIMEOUT_S).close()
            return ""
        reader = connection.makefile("rb")
        for _ in range(request.get("answers", 1)):
            if wrong := _wrong_answer(reader, request):
                return wrong
        return _wrong_end(connection, reader) if request.get("closes") else ""


def _wrong_answer(reader, request: dict) -> str:
    line = reader.readline().decode("latin-1")
    match = re.match(r"HTTP/1\.[01] (\d{3})\b", line)
    if not match:
        return f"not a status line: {line!r}"
    if int(match[1]) not in request["status"]:
        return f"status {match[1]}, expected {request['status']}"
    headers = {}
    while line := reader.readline().decode("latin-1").rstrip("\r\n"):
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    for name, pattern in request.get("headers", {}).items():
        if not re.fullmatch(pattern, headers.get(name.lower(), "")):
            return f"header {name}: {headers.get(name.lower())!r}, expected {pattern!r}"
    length = headers.get("content-length")
    body = reader.read(int(length)) if length is not None else reader.read()
    expected = request.get("body")
    if expected is not None and body.decode("utf-8", "replace") != expected:
        return f"body {body[:200]!r}, expected {expected!r}"
    return ""


def _wrong_end(connection: socket.socket, reader) -> str:
    connection.settimeout(TIMEOUT_S)
    try:
        rest = reader.read(1)
    except TimeoutError:
        return "the connection stays open"
    except ConnectionResetError:
        return "the connection was reset, not closed"
    return f"more than the answer: {rest!r}" if rest else ""
