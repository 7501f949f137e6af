"""The agent's inner process, the first of its pid namespace: it serves the controller's requests.

Every public method of `Verbs` is a verb; the other keys of a request are its arguments. A verb that
may wait runs in a thread of its own, so that the others, above all `ping` and `clock`, never wait.
"""

import contextlib
import errno
import hashlib
import json
import os
import platform
import socket
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from deathmatch.agent import children, diag, kernel, wire
from deathmatch.agent.children import Children
from deathmatch.agent.journal import Journal
from deathmatch.agent.kernel import Sampling

# After a pause of this machine the controller's messages wait in the pipe.
_GRACE_S = 0.5
_WAITING = {"run", "kill", "connect", "transmit", "receive", "send", "sample", "pss_bytes"}
_NICENESS = 10

PACKAGE = Path(__file__).resolve().parent.parent


def files() -> list[Path]:
    """Return the files that make up the agent, relative to the folder of the package, sorted."""
    paths = [PACKAGE / "__init__.py", *(PACKAGE / "agent").glob("*.py")]
    return sorted(path.relative_to(PACKAGE.parent) for path in paths)


def digest() -> str:
    """Return 16 digits of a hash of the files and their names; reads all of them."""
    hashed = hashlib.sha256()
    for path in files():
        content = (PACKAGE.parent / path).read_bytes()
        hashed.update(f"{path} {len(content)}\n".encode() + content)
    return hashed.hexdigest()[:16]


class Verbs:
    """The requests that a controller may make.

    Times are ns of this host's clocks, pids those of its namespace. A call that fails raises
    OSError, which the controller raises again, or ValueError.
    """

    def __init__(self, folder: Path, report: children.Report):
        self._folder = folder
        self._journal = Journal(folder)
        self._children = Children(folder, report)
        self._sampling = Sampling()
        self._sockets: dict[int, socket.socket] = {}
        self._held: list[int] = []
        # Verbs that are another module's functions.
        self.set = self._journal.set
        for function in (kernel.usage, kernel.pss_bytes, kernel.threads, kernel.waits,
                         kernel.counters, kernel.raise_descriptors, diag.listeners, diag.count,
                         children.kill,
                         self._children.start, self._children.run, self._children.signal,
                         self._children.send, self._children.end_input,
                         self._children.left_out_bytes):  # fmt: skip
            setattr(self, function.__name__, function)

    def ping(self) -> None:
        """Show that the agent is alive."""

    def clock(self) -> dict[str, int]:
        """Return the present time of the monotonic and the wall clock, the latter since 1970."""
        return {"monotonic_ns": time.monotonic_ns(), "wall_ns": time.time_ns()}

    def processes(self, but: Iterable[int] = ()) -> list[int]:
        """Return the pids of the session's programs and their descendants, `but` for these."""
        return kernel.processes({*but, *self._children.own()})

    def read(self, path: str) -> str:
        """Return a file's text, with U+FFFD for invalid UTF-8."""
        return Path(path).read_text(errors="replace")

    def fetch(self, path: str = "", process: int = -1, offset: int = 0) -> dict[str, Any]:
        """Return the packed "data" of a file, or of a program's output, from `offset`.

        At most wire.CHUNK_BYTES; none at its end.
        """
        with (Path(path) if path else self._children.file(process)).open("rb") as file:
            file.seek(offset)
            return {"data": wire.pack(file.read(wire.CHUNK_BYTES))}

    def write(self, path: str, data: str, offset: int) -> None:
        """Write packed data to a file at `offset`; 0 replaces the file."""
        with Path(path).open("r+b" if offset else "wb") as file:
            file.seek(offset)
            file.write(wire.unpack(data))

    def files(self, folder: str) -> list[str]:
        """Return all files of a folder, recursively, relative to it, sorted."""
        paths = sorted(path for path in Path(folder).rglob("*") if path.is_file())
        return [str(path.relative_to(folder)) for path in paths]

    def hold(self, path: str) -> bool:
        """Lock a folder until the session ends; return whether it still exists (flock(2))."""
        return kernel.hold(path, self._held)

    def settings(self, paths: Sequence[str]) -> dict[str, str]:
        """Return the values in force, by path under /proc/sys or /sys; "" for a missing file."""
        return {
            path: Path(path).read_text().strip() if Path(path).exists() else "" for path in paths
        }

    def affinity(self) -> list[int]:
        """Return the numbers of the CPUs that programs may use, sorted."""
        return sorted(os.sched_getaffinity(0))

    def keep_to(self, cpus: Sequence[int]) -> None:
        """Let the agent, and programs started without `cpus`, use only these CPUs."""
        for thread in kernel.threads(os.getpid()):
            os.sched_setaffinity(thread, cpus)

    def sample(
        self, pids: Sequence[int] | None = None, port: int | None = None,
        cpus: Sequence[int] | None = None, group: str = "", settled: bool = False,
    ) -> dict[str, Any]:  # fmt: skip
        """Return a sample: `Sampling.take`; default of `pids`: all of `processes`."""
        # A load generator that waits for the same CPU runs first. Each call has its own thread, so
        # this does not affect other calls.
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
        chosen = self.processes() if pids is None else pids
        return self._sampling.take(chosen, port, cpus, group, settled)

    def connect(self, number: int, address: str, port: int, patience_s: float) -> None:
        """Open a TCP connection from here, with a number that the controller chooses."""
        self._sockets[number] = socket.create_connection((address, port), patience_s)

    def transmit(self, number: int, data: str, patience_s: float) -> None:
        """Send all of the packed data over a connection."""
        self._sockets[number].settimeout(patience_s)
        self._sockets[number].sendall(wire.unpack(data))

    def receive(self, number: int, limit_bytes: int, patience_s: float) -> dict[str, Any]:
        """Return the next packed "data" of a connection; none at its end."""
        self._sockets[number].settimeout(patience_s)
        return {"data": wire.pack(self._sockets[number].recv(min(limit_bytes, wire.CHUNK_BYTES)))}

    def hang_up(self, number: int) -> None:
        """Close a connection."""
        self._sockets.pop(number).close()


class Session:
    """One session: requests from `incoming`, answers and events to `outgoing`, both descriptors."""

    def __init__(self, incoming: int, outgoing: int, folder: Path, silence_s: float):
        self._incoming, self._outgoing = incoming, outgoing
        self._writing = threading.Lock()
        self._silence_s, self._heard = silence_s, time.monotonic()
        self._verbs = Verbs(folder, self._report)

    def serve(self, hello: dict[str, Any]) -> None:
        """Send the greeting, then serve requests until the input ends or is silent."""
        os.write(self._outgoing, b"\n")
        self._report(hello)
        threading.Thread(target=self._watch, daemon=True).start()
        with open(self._incoming, "rb") as lines:
            for text in lines:
                self._heard = time.monotonic()
                request = wire.message(text)
                if request["verb"] == "end":
                    return
                if request["verb"] in _WAITING:
                    threading.Thread(target=self._answer, args=(request,), daemon=True).start()
                else:
                    self._answer(request)

    def _watch(self) -> None:
        while True:
            time.sleep(max(0.0, self._heard + self._silence_s - time.monotonic()))
            heard = self._heard
            if time.monotonic() - heard >= self._silence_s:
                time.sleep(_GRACE_S)
                if self._heard == heard:
                    # All processes of the namespace end with its first one.
                    os._exit(SILENT)

    def _answer(self, request: dict[str, Any]) -> None:
        number, verb = request.pop("id", None), request.pop("verb")
        try:
            if verb.startswith("_") or not hasattr(self._verbs, verb):
                raise ValueError(f"there is no verb {verb!r}")
            answer = {"ok": getattr(self._verbs, verb)(**request)}
        except Exception as error:
            answer = {"error": described(error)}
        if number is not None:
            self._report({"id": number, **answer})

    def _report(self, message: dict[str, Any]) -> None:
        text = wire.line(message)
        try:
            with self._writing:
                while text:
                    text = text[os.write(self._outgoing, text) :]
        except OSError:
            os._exit(CLOSED)


SILENT, CLOSED = 3, 4
"""Exit statuses: the controller was silent; it no longer reads."""


def described(error: Exception) -> dict[str, Any]:
    """Return the fields by which the controller raises the same error."""
    if isinstance(error, TimeoutError) and error.errno is None:
        return {"errno": errno.ETIMEDOUT, "text": "timed out", "file": None}
    if isinstance(error, OSError) and error.errno is not None:
        return {"errno": error.errno, "text": error.strerror, "file": error.filename}
    return {"errno": None, "text": f"{type(error).__name__}: {error}", "file": None}


def run(text: str) -> None:
    """Serve the session of a keeper, with its settings as JSON, until it ends."""
    begin = json.loads(text)
    folder = Path(begin["folder"])
    incoming, outgoing = os.dup(0), os.dup(1)
    # So that no program can use the channel.
    with open(os.devnull, "r+") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    hello = {
        "hello": "deathmatch agent",
        "code": digest(),
        "python": platform.python_version(),
        "folder": str(folder),
        "restored": begin["restored"],
    }
    Session(incoming, outgoing, folder, begin["silence_s"]).serve(hello)
    sys.stdout.flush()
    os._exit(0)
