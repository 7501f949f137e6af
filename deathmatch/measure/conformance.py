"""Does a server answer an experiment's requests as it must, before it is timed?"""

import contextlib
import platform
import re
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from deathmatch.measure import sampler, websocket

TIMEOUT_S = 5
# For an answer that need not come.
PATIENCE_S = 0.5
# A request that has one of these wants an answer; any other, that the server takes it for wrong
# and survives it.
ANSWERED = {"status", "echoes", "refuses"}
CONCURRENT = 100
# Longer than a JIT compiler works off what the checks gave it.
REST_WITHIN_S = 10
REST_WINDOW_S = 0.25
# Of a CPU: a loop that spins takes a whole one, timers and collectors of idle runtimes a hundredth.
REST_SHARE = 0.25
# More than any answer here; a server that never ends one must not fill the memory.
LONGEST_LINE_BYTES = 65536
LONGEST_BODY_BYTES = 1_000_000


def check(host: str, port: int, requests: list[dict]) -> list[dict]:
    """Send each request of an experiment's `conformance` table; return one result for each.

    A result has name, ok and seen (what was wrong; empty if ok). One that wants no answer
    passes if the server answers with an error or not at all, and still accepts connections.
    """
    return [_check(host, port, request) for request in requests]


def check_variant(
    host: str, port: int, requests: list[dict], factors: dict, somaxconn: int,
    pids: Callable[[], list[int]],
) -> list[dict]:  # fmt: skip
    """Check all that a running server must show before it is timed, as `check` returns it.

    What its experiment asks, many at once, the listen backlog and the readiness mechanism that
    its factors name, and rest; `pids` gives the server's processes, of which there may be more
    once it has been asked.
    """
    checks = check(host, port, requests)
    queue = factors.get("backlog", CONCURRENT)
    # A shorter queue drops what comes at once: that is the experiment, not a fault.
    if queue >= CONCURRENT:
        checks.append(check_concurrent(host, port, probe(requests), CONCURRENT))
    if "backlog" in factors:
        checks.append(check_backlog(port, queue, somaxconn))
    running = pids()
    if "readiness" in factors:
        checks.append(check_readiness(running, factors["readiness"]))
    return [*checks, check_rest(running)]


def probe(requests: list[dict]) -> dict:
    """Return the first of the requests that wants an answer."""
    return next(request for request in requests if request.keys() & ANSWERED)


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


def check_concurrent(host: str, port: int, request: dict, connections: int) -> dict:
    """Open many connections, only then ask on each, in reverse order; all must be answered."""
    name = f"{connections} connections at once"
    if "frames" in request:
        wrong = websocket.wrong_at_once(host, port, request, connections, TIMEOUT_S)
        return {"name": name, "ok": not wrong, "seen": wrong}
    wrong, opened = "", []
    try:
        for _ in range(connections):
            opened.append(socket.create_connection((host, port), timeout=TIMEOUT_S))
        for connection in reversed(opened):
            connection.sendall(spelled_out(request["send"]).encode("latin-1"))
        for connection in opened:
            if wrong := _wrong_answer(connection.makefile("rb"), request):
                break
    except OSError as error:
        wrong = f"{type(error).__name__} with {len(opened)} open: {error}"
    finally:
        for connection in opened:
            connection.close()
    return {"name": name, "ok": not wrong, "seen": wrong}


# System calls by number (syscalls(2), the kernel's unistd headers), by the mechanism they are of.
_WAITS = {
    "x86_64": {
        23: "select", 270: "select", 7: "poll", 271: "poll",
        232: "epoll", 281: "epoll", 441: "epoll", 426: "io_uring",
    },
    "aarch64": {72: "select", 73: "poll", 22: "epoll", 441: "epoll", 426: "io_uring"},
}  # fmt: skip


def check_readiness(pids: list[int], mechanism: str) -> dict:
    """Compare the system calls in which the idle server's threads wait with `mechanism`.

    /proc/<pid>/task/<tid>/syscall (proc(5)) tells them. An event loop wakes now and then, so
    that several looks are taken. Runtimes have threads beside their event loop that wait in
    select or poll: a thread that waits in epoll shows that those are not its sockets' mechanism.
    """
    known, seen = _WAITS.get(platform.machine(), {}), set()
    for _ in range(20):
        for pid in pids:
            for file in Path(f"/proc/{pid}/task").glob("*/syscall"):
                with contextlib.suppress(OSError, ValueError):
                    seen.add(known.get(int(file.read_text().split()[0])))
        if mechanism in seen:
            break
        time.sleep(0.02)
    found = ", ".join(sorted(seen - {None})) or "no known system call"
    ok = mechanism in seen and (mechanism not in ("select", "poll") or "epoll" not in seen)
    return {
        "name": f"waits with {mechanism}",
        "ok": ok,
        "seen": "" if ok else f"its threads wait in {found}",
    }


def check_rest(pids: list[int], within_s: float = REST_WITHIN_S) -> dict:
    """Wait until the server, of which nobody wants anything any more, leaves its CPU alone.

    One that never does spins over something that a check left behind, and would be measured with
    that beside its work.
    """
    deadline, share = time.monotonic() + within_s, 1.0
    while share > REST_SHARE and time.monotonic() < deadline:
        began_ns, spent_ns = time.monotonic_ns(), _cpu_ns(pids)
        time.sleep(REST_WINDOW_S)
        share = (_cpu_ns(pids) - spent_ns) / (time.monotonic_ns() - began_ns)
    ok = share <= REST_SHARE
    return {
        "name": "at rest after the checks",
        "ok": ok,
        "seen": "" if ok else f"after {within_s:g} s it still uses {share:.0%} of a CPU",
    }


def _cpu_ns(pids: list[int]) -> int:
    return sum(sampler.usage(pid)["cpu_ns"] for pid in pids)


def spelled_out(text: str) -> str:
    """Return a conformance text with each {x*4000} replaced by that many x."""
    return re.sub(r"\{(.)\*(\d+)\}", lambda match: match[1] * int(match[2]), text)


def _check(host: str, port: int, request: dict) -> dict:
    try:
        wrong = _wrong(host, port, request)
    except OSError as error:
        wrong = f"{type(error).__name__}: {error}"
    return {"name": request["name"], "ok": not wrong, "seen": wrong}


def _wrong(host: str, port: int, request: dict) -> str:
    if "frames" in request:
        return websocket.wrong(host, port, request, TIMEOUT_S)
    with socket.create_connection((host, port), timeout=TIMEOUT_S) as connection:
        sent = spelled_out(request["send"]).encode("latin-1")
        connection.sendall(sent)
        if not (request.keys() & ANSWERED):
            said = _first_bytes(connection)
            connection.close()
            socket.create_connection((host, port), timeout=TIMEOUT_S).close()
            return f"it answers {said!r}" if re.match(rb"HTTP/1\.[01] [123]", said) else ""
        reader = connection.makefile("rb")
        for call in range(request.get("repeat", 1)):
            if call:
                connection.sendall(sent)
            for _ in range(request.get("answers", 1)):
                if wrong := _wrong_answer(reader, request):
                    return f"call {call + 1}: {wrong}" if call else wrong
        return _wrong_end(connection, reader) if request.get("closes") else ""


def _first_bytes(connection: socket.socket) -> bytes:
    connection.settimeout(PATIENCE_S)
    try:
        return connection.recv(64)
    except (TimeoutError, ConnectionResetError):
        return b""


def _wrong_answer(reader, request: dict) -> str:
    if request.get("echoes"):
        sent = spelled_out(request["send"]).encode("latin-1")
        back = reader.read(len(sent))
        return "" if back == sent else f"{back[:200]!r}, expected what was sent"
    line = reader.readline(LONGEST_LINE_BYTES).decode("latin-1")
    match = re.match(r"HTTP/1\.[01] (\d{3})\b", line)
    if not match:
        return f"not a status line: {line!r}"
    if int(match[1]) not in request["status"]:
        return f"status {match[1]}, expected {request['status']}"
    headers = {}
    while line := reader.readline(LONGEST_LINE_BYTES).decode("latin-1").rstrip("\r\n"):
        if len(headers) == 100:
            return "more than 100 headers"
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    for name, pattern in request.get("headers", {}).items():
        if not re.fullmatch(pattern, headers.get(name.lower(), "")):
            return f"header {name}: {headers.get(name.lower())!r}, expected {pattern!r}"
    length = headers.get("content-length", str(LONGEST_BODY_BYTES))
    if not length.isdecimal():
        return f"header Content-Length: {length!r}, not a number"
    body = reader.read(min(int(length), LONGEST_BODY_BYTES))
    expected = spelled_out(request["body"]) if "body" in request else None
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
