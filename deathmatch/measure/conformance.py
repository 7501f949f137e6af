"""Check that a server answers an experiment's requests as it must, before it is timed."""

import contextlib
import platform
import re
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import h11

from deathmatch.hosts.host import Connected, Dial, Host
from deathmatch.hosts.host import dial as here
from deathmatch.measure import websocket
from deathmatch.plan.experiment import spelled_out

# For each whole answer.
TIMEOUT_S = 5
# For an optional answer.
PATIENCE_S = 0.5
# A request with one of these keys must be answered; any other is malformed, and the server must
# reject and survive it.
ANSWERED = {"status", "echoes", "refuses"}
CONCURRENT = 100
SOMAXCONN = "net.core.somaxconn"
# Longer than a JIT compiler needs for the code that the checks have run.
REST_WITHIN_S = 10
REST_WINDOW_S = 0.25
# A share of a CPU: a busy loop takes a whole one, timers and garbage collectors of idle runtimes a
# hundredth.
REST_SHARE = 0.25
# Larger than any answer here, so that an endless answer does not fill the memory.
LONGEST_HEAD_BYTES = 65536
LONGEST_BODY_BYTES = 1_000_000


@dataclass(frozen=True)
class Check:
    """A check of the server, and what was wrong; `seen` is "" if nothing was."""

    name: str
    seen: str

    @property
    def ok(self) -> bool:
        """Whether the server passed."""
        return not self.seen

    def record(self) -> dict[str, Any]:
        """Return the record for `conformance` of trial.json (`plan.record.RecordedCheck`)."""
        return {"name": self.name, "ok": self.ok, "seen": self.seen}


def check(address: str, port: int, requests: list[dict], dial: Dial = here) -> list[Check]:
    """Send each request of an experiment's `conformance` table; return a check for each.

    A malformed request passes if the server answers with an error or not at all, and still accepts
    connections. `dial` opens them, from a client's host.
    """
    return [_check(address, port, request, dial) for request in requests]


def check_variant(
    host: Host, address: str, port: int, requests: list[dict], factors: dict,
    pids: Callable[[], list[int]], known: Collection[str] = (), dial: Dial = here,
) -> list[Check]:  # fmt: skip
    """Run all checks of a running server before it is timed; return them as `check` does.

    They are the listen backlog of its factors, the experiment's requests, many connections at once
    and the readiness mechanism; the server is busy with them until `check_rest`. A wrong backlog
    that is not a `known` failure ends them at once, as a backlog that is too short makes every
    other check slow. `host` is the server's; `pids` returns the server's processes, as there may be
    more after its first request.
    """
    checks = []
    # If the backlog is no factor, the server chose it.
    queue = factors.get("backlog") or max((one.limit for one in host.listeners(port)), default=0)
    if "backlog" in factors:
        somaxconn = int(host.sysctls([SOMAXCONN])[SOMAXCONN])
        checks.append(check_backlog(host, port, queue, somaxconn))
        if not checks[0].ok and checks[0].name not in known:
            return checks
    checks += check(address, port, requests, dial)
    # A shorter queue drops simultaneous connections, which is no fault.
    if queue >= CONCURRENT:
        checks.append(check_concurrent(address, port, probe(requests, known), CONCURRENT, dial))
    if "readiness" in factors:
        checks.append(check_readiness(host, pids(), factors["readiness"]))
    return checks


def probe(requests: list[dict], known: Collection[str] = ()) -> dict:
    """Return the first request that must be answered and is not a `known` failure."""
    wanting = [request for request in requests if request.keys() & ANSWERED]
    return next((each for each in wanting if each["name"] not in known), wanting[0])


def contradicts(seen: str) -> bool:
    """Return whether a check has `seen` a wrong answer, rather than no answer."""
    return ", expected " in seen


def check_backlog(host: Host, port: int, backlog: int, somaxconn: int) -> Check:
    """Compare the kernel's limit of the accept queue with min(backlog, somaxconn): listen(2)."""
    expected = min(backlog, somaxconn)
    found = sorted({one.limit for one in host.listeners(port)})
    advice = "pass {backlog} to listen(), or leave it out of [factors]"
    problem = (
        "" if found == [expected] else f"the kernel has {found}, expected {expected}: {advice}"
    )
    return Check(f"listen backlog {backlog}, capped at {somaxconn}", problem)


def check_concurrent(
    address: str, port: int, request: dict, connections: int, dial: Dial = here
) -> Check:
    """Open many connections, then send a request on each in reverse order; check all answers."""
    name = f"{connections} connections at once"
    if "frames" in request:
        return Check(
            name, websocket.problem_at_once(address, port, request, connections, TIMEOUT_S, dial)
        )
    problem, opened = "", []
    try:
        for _ in websocket.in_time(range(connections)):
            opened.append(dial(address, port, TIMEOUT_S))
        for connection in reversed(opened):
            connection.sendall(spelled_out(request["send"]).encode("latin-1"))
        for connection in websocket.in_time(opened):
            if problem := _answer_problem(_Answers(connection, request), request):
                break
    except OSError as error:
        problem = f"{type(error).__name__} with {len(opened)} open: {error}"
    finally:
        for connection in opened:
            connection.close()
    return Check(name, problem)


# {architecture: {number of a system call: mechanism}}: syscalls(2), the kernel's unistd headers.
_WAITS = {
    "x86_64": {
        23: "select", 270: "select", 7: "poll", 271: "poll",
        232: "epoll", 281: "epoll", 441: "epoll", 426: "io_uring",
    },
    "aarch64": {72: "select", 73: "poll", 22: "epoll", 441: "epoll", 426: "io_uring"},
}  # fmt: skip


def check_readiness(host: Host, pids: list[int], mechanism: str) -> Check:
    """Compare the system calls in which the idle server's threads wait with `mechanism`.

    The threads are read several times, as an event loop wakes now and then. Other threads of a
    runtime may wait in select or poll: if a thread waits in epoll, that is the mechanism of its
    sockets.
    """
    waits = mechanisms(host, pids, mechanism)
    ok = mechanism in waits and (mechanism not in ("select", "poll") or "epoll" not in waits)
    named = ", ".join(sorted(waits)) or "no known system call"
    return Check(f"waits with {mechanism}", "" if ok else f"its threads wait in {named}")


def mechanisms(host: Host, pids: list[int], until: str = "") -> set[str]:
    """Return the mechanisms in whose system calls idle threads wait, read `until` one is seen."""
    names, waits = _WAITS.get(platform.machine(), {}), set()
    for _ in range(20):
        for pid in pids:
            waits |= {names.get(number, "") for number in host.waits(pid)}
        if until in waits - {""}:
            break
        time.sleep(0.02)
    return waits - {""}


def check_rest(host: Host, pids: list[int], within_s: float = REST_WITHIN_S) -> Check:
    """Wait until the server, which gets no more requests, uses little CPU time.

    A server that never rests spins over something that a check left behind, which its measured CPU
    time would include.
    """
    deadline, share = time.monotonic() + within_s, 1.0
    while share > REST_SHARE and time.monotonic() < deadline:
        began_ns, spent_ns = time.monotonic_ns(), _cpu_ns(host, pids)
        time.sleep(REST_WINDOW_S)
        share = (_cpu_ns(host, pids) - spent_ns) / (time.monotonic_ns() - began_ns)
    resting = share <= REST_SHARE
    problem = "" if resting else f"after {within_s:g} s it still uses {share:.0%} of a CPU"
    return Check("at rest after the checks", problem)


def _cpu_ns(host: Host, pids: list[int]) -> int:
    return sum(host.usage(pid)["cpu_ns"] for pid in pids)


def _check(address: str, port: int, request: dict, dial: Dial) -> Check:
    try:
        problem = _problem(address, port, request, dial)
    except OSError as error:
        problem = f"{type(error).__name__}: {error}"
    return Check(request["name"], problem)


def _problem(address: str, port: int, request: dict, dial: Dial) -> str:
    if "frames" in request:
        return websocket.problem(address, port, request, TIMEOUT_S, dial)
    with contextlib.closing(dial(address, port, TIMEOUT_S)) as connection:
        sent = spelled_out(request["send"]).encode("latin-1")
        connection.sendall(sent)
        if not (request.keys() & ANSWERED):
            answer = _first_bytes(connection)
            connection.close()
            dial(address, port, TIMEOUT_S).close()
            return f"it answers {answer!r}" if re.match(rb"HTTP/1\.[01] [123]", answer) else ""
        answers = _Answers(connection, request)
        for call in range(request.get("repeat", 1)):
            if call:
                connection.sendall(sent)
            for _ in range(request.get("answers", 1)):
                if problem := _answer_problem(answers, request):
                    return f"call {call + 1}: {problem}" if call else problem
        return answers.end_problem() if request.get("closes") else ""


def _first_bytes(connection: Connected) -> bytes:
    connection.settimeout(PATIENCE_S)
    try:
        return connection.recv(64)
    except (TimeoutError, ConnectionResetError):
        return b""


class _Answers:
    """The answers to one request on one connection, each read to its end.

    h11 does not see the sent request, so for each answer it gets one of the same method. Raises
    TimeoutError for an answer that is incomplete after TIMEOUT_S.
    """

    def __init__(self, connection: Connected, request: dict):
        self._connection = connection
        self._method = request["send"].partition(" ")[0]
        self._http: h11.Connection | None = None

    def echo(self, size: int) -> bytes:
        """Return the next bytes, up to `size`, fewer at the connection's end."""
        back = b""
        self._begin()
        while len(back) < size and (part := self._receive(size - len(back))):
            back += part
        return back

    def head(self) -> h11.Response:
        """Return the next answer's status and headers; raise h11.ProtocolError without these."""
        self._begin()
        if self._http is None:
            self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=LONGEST_HEAD_BYTES)
        else:
            self._http.start_next_cycle()
        request = h11.Request(method=self._method, target="/", headers=[("Host", "localhost")])
        self._http.send(request)
        self._http.send(h11.EndOfMessage())
        while not isinstance(event := self._event(), h11.Response):
            pass
        return event

    def body(self) -> bytes:
        """Return the rest of that answer; raise h11.ProtocolError if it is incomplete."""
        body = b""
        while len(body) < LONGEST_BODY_BYTES and isinstance(event := self._event(), h11.Data):
            body += event.data
        return body

    def _event(self) -> h11.Event:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._http.receive_data(self._receive(65536))
        return event

    def _begin(self) -> None:
        self._until = time.monotonic() + TIMEOUT_S

    def _receive(self, most_bytes: int) -> bytes:
        left_s = self._until - time.monotonic()
        with contextlib.suppress(TimeoutError):
            if left_s > 0:
                self._connection.settimeout(left_s)
                return self._connection.recv(most_bytes)
        raise TimeoutError(f"no whole answer within {TIMEOUT_S} s")

    def end_problem(self) -> str:
        """Return what is wrong, if the connection does not end now; "" otherwise."""
        self._connection.settimeout(TIMEOUT_S)
        try:
            rest = (self._http and self._http.trailing_data[0]) or self._connection.recv(1)
        except TimeoutError:
            return "the connection stays open"
        except ConnectionResetError:
            return "the connection was reset, not closed"
        return f"more than the answer: {rest!r}" if rest else ""


def _answer_problem(answers: _Answers, request: dict) -> str:
    if request.get("echoes"):
        sent = spelled_out(request["send"]).encode("latin-1")
        back = answers.echo(len(sent))
        return "" if back == sent else f"{back[:200]!r}, expected what was sent"
    try:
        head = answers.head()
    except h11.ProtocolError as error:
        return f"no HTTP answer: {error}"
    if head.status_code not in request["status"]:
        starting = "; open the port only once it can answer" if head.status_code == 503 else ""
        expected = " or ".join(map(str, request["status"]))
        return f"status {head.status_code}, expected {expected}{starting}"
    found = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
    for name, pattern in request.get("headers", {}).items():
        if not re.fullmatch(pattern, found.get(name.lower(), "")):
            return f"header {name}: {found.get(name.lower())!r}, expected {pattern!r}"
    try:
        body = answers.body()
    except h11.ProtocolError as error:
        return f"body: {error}"
    expected = spelled_out(request["body"]) if "body" in request else None
    if expected is not None and body.decode("utf-8", "replace") != expected:
        return f"body {body[:200]!r}, expected {expected!r}"
    return ""


NO_ANSWER = h11.ProtocolError
"""What `answer` raises if there is no HTTP answer."""


def answer(connection: Connected, sent: str) -> tuple[int, bytes]:
    """Return the status and the body of the answer to a request; raise NO_ANSWER or OSError."""
    answers = _Answers(connection, {"send": sent})
    return answers.head().status_code, answers.body()
