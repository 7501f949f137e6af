"""A program on a host: its end, its output and its input; and the last lines of a log."""

import collections
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

from deathmatch.agent import wire
from deathmatch.errors import printable
from deathmatch.hosts.connection import Connection
from deathmatch.plan.paths import ROOT

TAIL_BYTES = 20_000
TAIL_LINES = 20


class Process:
    """A program that an agent started; its pid is the host's.

    If the host is lost, every call raises HostLost.
    """

    def __init__(self, agent: Connection, number: int, output: Path | None, shared: bool):
        self._agent, self.number, self._output = agent, number, output
        # A host that shares the caller's files writes to `output` itself.
        self._bringing = output is not None and not shared
        self._began_bytes = output.stat().st_size if output and output.exists() else 0
        self._left_out_bytes = 0
        self.pid = 0
        # How late it began, if it was started with an instant.
        self.late_ns: int | None = None
        self._collected = 0
        self._status: int | None = None
        self._lines: collections.deque[str] = collections.deque()
        self._changed = threading.Condition()
        agent.listen(number, self._hear)

    def _hear(self, event: dict) -> None:
        with self._changed:
            if event["event"] == "said":
                self._lines.append(event["text"])
            elif event["event"] == "began":
                self.late_ns = event["late_ns"]
            elif event["event"] == "ended":
                self._status = event["status"]
            self._changed.notify_all()

    def _await(self, condition: Callable[[], object], patience_s: float | None) -> bool:
        """Wait until `condition()` is true; return whether it is. Raises HostLost."""
        with self._changed:
            self._changed.wait_for(lambda: condition() or self._agent.lost(), patience_s)
            if condition():
                return True
        if error := self._agent.lost():
            raise error
        return False

    def wait(self, patience_s: float | None = None) -> int | None:
        """Return its exit status, -N after signal N; None if it has not ended within `patience_s`.

        Without `patience_s`, waits for its end. Its output is copied at its end; before that,
        nothing crosses the link.
        """
        if not self._await(lambda: self._status is not None, patience_s):
            return None
        self.collect()
        return self._status

    def collect(self) -> None:
        """Copy its output so far to `output`."""
        if not self._bringing:
            return
        if (left_out_bytes := self.left_out_bytes()) != self._left_out_bytes:
            # The middle of its output was removed: copy all of it again.
            os.truncate(self._output, self._began_bytes)
            self._left_out_bytes, self._collected = left_out_bytes, 0
        with self._output.open("ab") as file:
            while data := self._chunk():
                file.write(data)
                self._collected += len(data)

    def left_out_bytes(self) -> int:
        """Return about how much of its bounded output was removed."""
        return self._agent.call("left_out_bytes", number=self.number)

    def _chunk(self) -> bytes:
        answer = self._agent.call("fetch", process=self.number, offset=self._collected)
        return wire.unpack(answer["data"])

    def signal(self, number: signal.Signals, group: bool = False) -> None:
        """Send a signal to it, or to its process group; do nothing if it has ended."""
        self._agent.call("signal", number=self.number, signal=int(number), group=group)

    def kill(self) -> None:
        """Kill it and wait for its end."""
        self.signal(signal.SIGKILL)
        self.wait()

    def send(self, text: str) -> None:
        """Write to its standard input, which needs `talk`; raise OSError if that is closed."""
        self._agent.call("send", number=self.number, text=text)

    def receive(self, patience_s: float) -> str | None:
        """Return its next line of output, "" at the end, None after `patience_s`.

        Needs `talk`.
        """
        if not self._await(lambda: self._lines, patience_s):
            return None
        # The last line, "", is kept, so that later calls also see the end.
        return self._lines[0] and self._lines.popleft()

    def finish(self, patience_s: float) -> str:
        """Close its input and return the rest of its output; kill it after `patience_s`.

        Needs `talk`.
        """
        self._agent.call("end_input", number=self.number)
        if not self._await(lambda: "" in self._lines, patience_s):
            self.kill()
        text = "".join(self._lines)
        self._lines.clear()
        self._lines.append("")
        self.wait()
        return text


def tail(log: Path, lines: int = TAIL_LINES) -> str:
    """Return the last lines of a log, printable, with paths relative to the project's root."""
    with log.open("rb") as file:
        # A line may be as long as the log.
        file.seek(max(0, log.stat().st_size - TAIL_BYTES))
        text = file.read().decode(errors="replace").replace(f"{ROOT}/", "")
    return "\n".join(map(printable, text.splitlines()[-lines:]))
