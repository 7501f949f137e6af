"""The controller's end of the channel to an agent: calls, events, and the detection of its loss."""

import collections
import contextlib
import itertools
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from deathmatch.agent import wire
from deathmatch.errors import UserError
from deathmatch.hosts import clocks
from deathmatch.hosts.clocks import Clocks

_STDERR_LINES = 20
# Longer than the agent waits for a lock and restores settings; ssh has its own time-out to connect.
_END_S = 10
_PING_ID, _GREETING_ID = 0, -1


class HostLost(UserError):
    """The connection to a host is lost, and all programs that it started there have ended."""


@dataclass
class NoAgent(Exception):
    """A command ended without the agent's greeting: its status and its last lines of output."""

    status: int
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """The lines as one text."""
        return "\n".join(self.lines)


@dataclass
class Refused(Exception):
    """The agent refuses to work: a reason, such as "busy", and details from the host."""

    reason: str
    detail: str


class Connection:
    """A session of the agent that the command `words` starts; `name` is the host's in messages.

    Raises NoAgent or Refused. Any thread may call its methods. Once the host is lost, because the
    channel has ended or nothing came for `silence_s`, every call raises HostLost.
    """

    def __init__(self, name: str, words: Sequence[str], silence_s: float = wire.SILENCE_S):
        self.name = name
        self.hello: dict[str, Any] = {}
        self.over: dict[str, Any] | None = None
        self._silence_s = silence_s
        self._ids = itertools.count(_PING_ID + 1)
        self._writing, self._losing = threading.Lock(), threading.Lock()
        # A message and when it came, on our clocks; HostLost if it can no longer come.
        self._greeting: Future[tuple[dict, tuple[int, int]]] = Future()
        self._answers = {_GREETING_ID: self._greeting}
        self._listeners: dict[int, Callable[[dict], None]] = {}
        self._lost = ""
        self._ended = threading.Event()
        self._heard = time.monotonic()
        self._lines: collections.deque[str] = collections.deque(maxlen=_STDERR_LINES)
        # A session of its own: an interrupt from the keyboard is for this process, which ends it.
        self._popen = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip
        self._errors = threading.Thread(target=self._read_errors, daemon=True)
        self._errors.start()
        threading.Thread(target=self._read, daemon=True).start()
        self._greeted()

    def call(self, verb: str, **arguments: Any) -> Any:
        """Return what a verb of `agent.session` returns; a round trip.

        Raises OSError as it was raised there, HostLost, or RuntimeError for a wrong request.
        """
        return self._exchange(verb, arguments)[0]

    def clocks(self, exchanges: int = 20) -> Clocks:
        """Compare the host's clocks with ours, in that many round trips."""
        seen = []
        for _ in range(exchanges):
            sent = (time.monotonic_ns(), time.time_ns())
            theirs, received = self._exchange("clock", {})
            seen.append((sent, (theirs["monotonic_ns"], theirs["wall_ns"]), received))
        monotonic, wall = ([tuple(t[clock] for t in times) for times in seen] for clock in (0, 1))
        return Clocks(clocks.offset(monotonic), clocks.offset(wall))

    def listen(self, process: int, listener: Callable[[dict], None]) -> None:
        """Call `listener` with the events of a process, and with {"event": "lost"} at the end.

        The reading thread calls it, so it must neither wait nor use the connection.
        """
        self._listeners[process] = listener

    def lost(self) -> HostLost | None:
        """Return the error that every call now raises; None while the host is connected."""
        if not self._lost:
            return None
        return HostLost(
            self._lost, where=f"host {self.name}",
            remedy="what ran there has ended; see whether the host is up, and run again",
        )  # fmt: skip

    def close(self) -> dict[str, Any] | None:
        """End the session; return its event `over`, with "restored" and "failed"; None if lost."""
        with contextlib.suppress(HostLost):
            self._send({"verb": "end"})
        self._ended.wait(_END_S)
        self._lose("the connection was closed")
        with contextlib.suppress(OSError):
            self._popen.stdin.close()
        self._popen.wait()
        return self.over

    def _greeted(self) -> None:
        try:
            message, _ = self._greeting.result()
        except HostLost:
            raise NoAgent(self._popen.wait(), tuple(self._lines)) from None
        if "refused" in message:
            raise Refused(message["refused"], message["detail"])
        threading.Thread(target=self._watch, daemon=True).start()

    def _exchange(self, verb: str, arguments: dict) -> tuple[Any, tuple[int, int]]:
        number = next(self._ids)
        coming = self._answers[number] = Future()
        self._send({"id": number, "verb": verb, **arguments})
        answer, received = coming.result()
        if error := answer.get("error"):
            if error["errno"] is None:
                raise RuntimeError(f"host {self.name}, {verb}: {error['text']}")
            raise OSError(error["errno"], error["text"], *filter(None, [error["file"]]))
        return answer["ok"], received

    def _send(self, message: dict) -> None:
        if error := self.lost():
            raise error
        try:
            with self._writing:
                self._popen.stdin.write(wire.line(message))
                self._popen.stdin.flush()
        except (OSError, ValueError):
            self._lose("the connection has broken")
            raise self.lost() from None

    def _watch(self) -> None:
        while not self._lost:
            if time.monotonic() - self._heard > self._silence_s:
                self._lose(f"gave no sign for {self._silence_s:g} s")
                return
            # A thread that sends a file may hold the lock if the link is down.
            if self._writing.acquire(timeout=wire.PING_S):
                try:
                    self._popen.stdin.write(wire.line({"id": _PING_ID, "verb": "ping"}))
                    self._popen.stdin.flush()
                except (OSError, ValueError):
                    pass
                finally:
                    self._writing.release()
            self._ended.wait(wire.PING_S)

    def _read(self) -> None:
        for text in self._popen.stdout:
            received = (time.monotonic_ns(), time.time_ns())
            self._heard = received[0] / 1e9
            if not (self.hello or text.startswith((wire.HELLO, wire.REFUSAL))):
                self._lines.append(text.decode(errors="replace").rstrip("\n"))
                continue
            with contextlib.suppress(ValueError):
                self._take(wire.message(text), received)
        # Wait for its last lines, which have the reason.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(_END_S)
        self._errors.join(1)
        self._lose("the connection ended")

    def _take(self, message: dict, received: tuple[int, int]) -> None:
        if "process" in message:
            if listener := self._listeners.get(message["process"]):
                listener(message)
        elif message.get("event") == "over":
            self.over = message
        elif "hello" in message or "refused" in message or "id" in message:
            if "hello" in message:
                self.hello = message
            # No caller waits for the answer to a ping.
            if coming := self._answers.pop(message.get("id", _GREETING_ID), None):
                coming.set_result((message, received))

    def _read_errors(self) -> None:
        for text in self._popen.stderr:
            self._lines.append(text.decode(errors="replace").rstrip("\n"))

    def _lose(self, why: str) -> None:
        with self._losing:
            if self._lost:
                return
            said = "".join(f"\n    {line}" for line in self._lines if line.strip())
            self._lost = why + (f"; it said:{said}" if said and self.hello else "")
        while self._answers:
            # The reading thread may have removed it at the same moment.
            with contextlib.suppress(KeyError):
                self._answers.popitem()[1].set_exception(self.lost())
        for listener in list(self._listeners.values()):
            listener({"event": "lost"})
        self._ended.set()
        # If the link is down, it would otherwise stay for minutes.
        self._popen.kill()
