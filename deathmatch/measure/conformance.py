"""Does a server answer an experiment's requests as it must, before it is timed?"""

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

# Of each answer as a whole, however little of it is lacking.
TIMEOUT_S = 5
# For an answer that need not come.
PATIENCE_S = 0.5
# A request that has one of these wants an answer; any other, that the server takes it for wrong
# and survives it.
ANSWERED = {"status", "echoes", "refuses"}
CONCURRENT = 100
SOMAXCONN = "net.core.somaxconn"
# Longer than a JIT compiler works off what the checks gave it.
REST_WITHIN_S = 10
REST_WINDOW_S = 0.25
# A share of a CPU: a busy loop takes a whole one, timers and collectors of idle runtimes a
# hundredth.
REST_SHARE = 0.25
# More than any answer here; a server that never ends one must not fill the memory.
LONGEST_HEAD_BYTES = 65536
LONGEST_BODY_BYTES = 1_000_000


@dataclass(frozen=True)
class Check:
    """What the server was checked for, and what was wrong; empty if nothing was."""

    name: str
    seen: str

    @property
    def ok(self) -> bool:
        """Whether the server passed."""
        return not self.seen

    def record(self) -> dict[str, Any]:
        """Return it as `conformance` of trial.json has it (`plan.record.RecordedCheck`)."""
        return {"name": self.name, "ok": self.ok, "seen": self.seen}


def check(address: str, port: int, requests: list[dict], dial: Dial = here) -> list[Check]:
    """Send each request of an experiment's `conformance` table; return a check for each.

    A request that wants no answer passes if the server answers with an error or not at all, and
    still accepts connections. `dial` opens them, from the host of a client.
    """
    return [_check(address, port, request, dial) for request in requests]


def check_variant(
    host: Host, address: str, port: int, requests: list[dict], factors: dict,
    pids: Callable[[], list[int]], known: Collection[str] = (), dial: Dial = here,
) -> list[Check]:  # fmt: skip
    """Check all that a running server must show before it is timed, as `check` returns it.

    The listen backlog that its factors name, what its experiment asks, many at once and the
    readiness mechanism; the server is busy with them until `check_rest`. A wrong backlog that is
    not among the `known` failures ends it at once: the kernel shows it in milliseconds, and a
    backlog that is too short makes every other check slow.
    `host` is the server's; `pids` returns the server's processes, of which there may be more after
    its first request.
    """
    checks = []
    # A server whose backlog is no factor chose its own.
    queue = factors.get("backlog") or max((one.limit for one in host.listeners(port)), default=0)
    if "backlog" in factors:
        somaxconn = int(host.sysctls([SOMAXCONN])[SOMAXCONN])
        checks.append(check_backlog(host, port, queue, somaxconn))
        if not checks[0].ok and checks[0].name not in known:
            return checks
    checks += check(address, port, requests, dial)
    # A shorter queue drops what comes at once: that is the experiment, not a fault.
    if queue >= CONCURRENT:
        checks.append(check_concurrent(address, port, probe(requests, known), CONCURRENT, dial))
    if "readiness" in factors:
        checks.append(check_readiness(host, pids(), factors["readiness"]))
    return checks


def probe(requests: list[dict], known: Collection[str] = ()) -> dict:
    """Return the first of the requests that wants an answer, and is not a `known` failure."""
    wanting = [request for request in requests if request.keys() & ANSWERED]
    return next((each for each in wanting if each["name"] not in known), wanting[0])


def contradicts(seen: str) -> bool:
    """Return whether what a check has `seen` is another answer than it must be, not none at all."""
    return ", expected " in seen


def check_backlog(host: Host, port: int, backlog: int, somaxconn: int) -> Check:
    """Compare the kernel's view of the listening socket with min(backlog, somaxconn).

    listen(2) tells of the cap.
    """
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
    """Open many connections, only then ask on each, in reverse order; all must be answered."""
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


# System calls by number (syscalls(2), the kernel's unistd headers), by the mechanism they are of.
_WAITS = {
    "x86_64": {
        23: "select", 270: "select", 7: "poll", 271: "poll",
        232: "epoll", 281: "epoll", 441: "epoll", 426: "io_uring",
    },
    "aarch64": {72: "select", 73: "poll", 22: "epoll", 441: "epoll", 426: "io_uring"},
}  # fmt: skip


def check_readiness(host: Host, pids: list[int], mechanism: str) -> Check:
    """Compare the system calls in which the idle server's threads wait with `mechanism`.

    An event loop wakes now and then, so that its threads are read several times. A runtime has
    further threads, which wait in select or poll: a thread that waits in epoll shows that those are
    not its sockets' mechanism.
    """
    waits = mechanisms(host, pids, mechanism)
    ok = mechanism in waits and (mechanism not in ("select", "poll") or "epoll" not in waits)
    named = ", ".join(sorted(waits)) or "no known system call"
    return Check(f"waits with {mechanism}", "" if ok else f"its threads wait in {named}")


def mechanisms(host: Host, pids: list[int], until: str = "") -> set[str]:
    """Return in which known system calls the idle threads wait, read `until` one is seen."""
    names, waits = _WAITS.get(platform.machine(), {}), set()
    for _ in range(20):
        for pid in pids:
            waits |= {names.get(number, "") for number in host.waits(pid)}
        if until in waits - {""}:
            break
        time.sleep(0.02)
    return waits - {""}


def check_rest(host: Host, pids: list[int], within_s: float = REST_WITHIN_S) -> Check:
    """Wait until the server, which nobody asks for anything any more, leaves its CPU alone.

    A server that never does so spins over something that a check left behind, and its measured CPU
    time would include that.
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

    h11 does not see what was sent: for each answer it gets a request of the same method.
    TimeoutError ends one that is not whole within TIMEOUT_S.
    """

    def __init__(self, connection: Connected, request: dict):
        self._connection = connection
        self._method = request["send"].partition(" ")[0]
        self._http: h11.Connection | None = None

    def echo(self, size: int) -> bytes:
        """Return the next bytes as they are, up to `size`, fewer at the connection's end."""
        back = b""
        self._begin()
        while len(back) < size and (part := self._receive(size - len(back))):
            back += part
        return back

    def head(self) -> h11.Response:
        """Return the next answer's status and headers; raises h11.ProtocolError if it has none."""
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
        """Return the rest of that answer; raises h11.ProtocolError if it breaks off."""
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
        """Return what is wrong with the connection's end, which must come now."""
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
"""What `answer` raises where there is none."""


def answer(connection: Connected, sent: str) -> tuple[int, bytes]:
    """Return the status and the body of the answer to a request; raises NO_ANSWER, OSError."""
    answers = _Answers(connection, {"send": sent})
    return answers.head().status_code, answers.body()
