"""A host that an agent serves: another machine, or namespaces of this one."""

import collections
import itertools
import os
import shlex
import signal
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from deathmatch.agent import children, wire
from deathmatch.agent.diag import Listener
from deathmatch.errors import UserError
from deathmatch.hosts.clocks import Clocks
from deathmatch.hosts.connection import Connection
from deathmatch.hosts.host import sysctl_path
from deathmatch.hosts.remote_socket import RemoteSocket


class RemoteProcess:
    """A program that the agent started. If the host is lost, every call raises HostLost."""

    def __init__(self, agent: Connection, number: int, output: Path | None, shared: bool):
        self._agent, self.number, self._output = agent, number, output
        # Who shares the caller's files has written there itself.
        self._bringing = output is not None and not shared
        self._began_bytes = output.stat().st_size if output and output.exists() else 0
        self._left_out_bytes = 0
        self.pid = 0
        # How late it began, if it was to begin at an instant, and once it has.
        self.late_ns: int | None = None
        self._collected = 0
        self._status: int | None = None
        self._said: collections.deque[str] = collections.deque()
        self._changed = threading.Condition()
        agent.listen(number, self._hear)

    def _hear(self, event: dict) -> None:
        with self._changed:
            if event["event"] == "said":
                self._said.append(event["text"])
            elif event["event"] == "began":
                self.late_ns = event["late_ns"]
            elif event["event"] == "ended":
                self._status = event["status"]
            self._changed.notify_all()

    def _await(self, what, patience_s: float | None) -> bool:
        """Wait until `what()` is true; return whether it is. HostLost if it cannot become so."""
        with self._changed:
            self._changed.wait_for(lambda: what() or self._agent.lost(), patience_s)
            if what():
                return True
        if error := self._agent.lost():
            raise error
        return False

    def wait(self, patience_s: float | None = None) -> int | None:
        """Return the exit status, None if it has not ended within `patience_s`.

        Nothing crosses the link to know; once it has ended, what it printed does.
        """
        if not self._await(lambda: self._status is not None, patience_s):
            return None
        self.collect()
        return self._status

    def collect(self) -> None:
        """Bring what it has printed so far to its `output`, here."""
        if not self._bringing:
            return
        if (left_out_bytes := self.left_out_bytes()) != self._left_out_bytes:
            # The middle of it was cut out.
            os.truncate(self._output, self._began_bytes)
            self._left_out_bytes, self._collected = left_out_bytes, 0
        with self._output.open("ab") as file:
            while data := self._chunk():
                file.write(data)
                self._collected += len(data)

    def left_out_bytes(self) -> int:
        """Return about how much of its output was cut out, as it was to be bounded."""
        return self._agent.call("left_out_bytes", number=self.number)

    def _chunk(self) -> bytes:
        answer = self._agent.call("fetch", process=self.number, offset=self._collected)
        return wire.unpack(answer["data"])

    def signal(self, number: signal.Signals, group: bool = False) -> None:
        """Send a signal, to its group if asked; nothing if it has ended."""
        self._agent.call("signal", number=self.number, signal=int(number), group=group)

    def kill(self) -> None:
        """Kill it and wait."""
        self.signal(signal.SIGKILL)
        self.wait()

    def send(self, text: str) -> None:
        """Write to its input, at once."""
        self._agent.call("send", number=self.number, text=text)

    def receive(self, patience_s: float) -> str | None:
        """Return its next line."""
        if not self._await(lambda: self._said, patience_s):
            return None
        # The last one, which is empty, stays: so does the end.
        return self._said[0] and self._said.popleft()

    def finish(self, patience_s: float) -> str:
        """End its input and return the rest."""
        self._agent.call("end_input", number=self.number)
        if not self._await(lambda: "" in self._said, patience_s):
            self.kill()
        text = "".join(self._said)
        self._said.clear()
        self._said.append("")
        self.wait()
        return text


class Remote:
    """A host served by an agent: `hosts.host.Host`, and what only a host elsewhere needs.

    `enter` are the words before a command that the caller would use to run it there; with `quoted`
    the command is one word. Paths are the host's but for `output`, `fetch` and `put`; with
    `shared` the host has the caller's files. `environment` is that of what is started without one;
    None is the agent's own.
    """

    def __init__(
        self, agent: Connection, enter: Sequence[str], quoted: bool = False, shared: bool = False
    ):  # fmt: skip
        self.name = agent.name
        self.shared = shared
        self.environment: Mapping[str, str] | None = None
        self.agent = agent
        # A folder of the session's own there, which ends with it.
        self.folder = Path(agent.hello["folder"])
        self._enter, self._quoted = tuple(enter), quoted
        self._numbers = itertools.count()

    def command(self, words: Sequence[str], cpus: Sequence[int] = ()) -> list[str]:
        """Return the words for logs and messages."""
        pinned = children.pinned(words, cpus)
        return [*self._enter, *([shlex.join(pinned)] if self._quoted else pinned)]

    def run(self, *words: str) -> str:
        """Run a command; UserError if it fails."""
        done = self.agent.call("run", words=words, environment=self._environment(None))
        if done["status"] != 0:
            said = done["stderr"].strip() or f"exit status {done['status']}"
            raise UserError(f"`{shlex.join(words)}` failed: {said}", where=f"host {self.name}")
        return done["stdout"]

    def start(
        self, words: Sequence[str], *, output: Path | None = None, cpus: Sequence[int] = (),
        folder: Path | None = None, environment: Mapping[str, str] | None = None,
        talk: bool = False, bounded: bool = False, at_ns: int | None = None,
    ) -> RemoteProcess:  # fmt: skip
        """Start a program, at an instant of the host's monotonic clock if one is given.

        Without `environment` it has the host's, without `folder` it works in the session's.
        `output` is brought when its end is waited for, or by `RemoteProcess.collect`.
        """
        process = RemoteProcess(self.agent, next(self._numbers), output, self.shared)
        process.pid = self.agent.call(
            "start", number=process.number, words=list(words), cpus=list(cpus),
            folder=str(folder or self.folder), talk=talk, output=output is not None,
            path=str(output.resolve()) if output and self.shared else "", bounded=bounded,
            at_ns=at_ns, environment=self._environment(environment),
        )["pid"]  # fmt: skip
        return process

    def _environment(self, given: Mapping[str, str] | None) -> dict[str, str] | None:
        chosen = self.environment if given is None else given
        return None if chosen is None else dict(chosen)

    def processes(self, other: Iterable[int] = ()) -> list[int]:
        """Return the living pids of the session's pid namespace."""
        return self.agent.call("processes", but=list(other))

    def kill(self, pids: Iterable[int], patience_s: float) -> None:
        """Kill processes and wait for them."""
        self.agent.call("kill", pids=list(pids), patience_s=patience_s)

    def usage(self, pid: int) -> dict[str, int]:
        """Return what one process uses."""
        return self.agent.call("usage", pid=pid)

    def threads(self, pid: int) -> list[int]:
        """Return the ids of the threads."""
        return self.agent.call("threads", pid=pid)

    def waits(self, pid: int) -> set[int]:
        """Return the numbers of the system calls that the threads are in."""
        return set(self.agent.call("waits", pid=pid))

    def read(self, path: str) -> str:
        """Return a file's text."""
        return self.agent.call("read", path=str(path))

    def counters(self) -> dict[str, dict[str, int]]:
        """Return the network's counters."""
        return self.agent.call("counters")

    def sample(
        self, pids: Sequence[int] | None = None, port: int | None = None,
        cpus: Sequence[int] | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Return a sample."""
        return self.agent.call("sample", pids=pids, port=port, cpus=cpus)

    def machine(self, cpus: Iterable[int]) -> dict[str, int | float]:
        """Return what the host's kernel has counted."""
        return self.agent.call("machine", cpus=list(cpus))

    def listeners(self, port: int = 0) -> list[Listener]:
        """Return the listening sockets."""
        return [Listener(*one) for one in self.agent.call("listeners", port=port)]

    def count(self, state: int, port: int) -> int:
        """Return how many sockets are in a state."""
        return self.agent.call("count", state=state, port=port)

    def connect(self, address: str, port: int, patience_s: float) -> RemoteSocket:
        """Open a connection."""
        return RemoteSocket(self.agent, address, port, patience_s)

    def keep_to(self, cpus: Sequence[int]) -> None:
        """Let the agent, and what is started without `cpus`, use these CPUs only."""
        self.agent.call("keep_to", cpus=list(cpus))

    def sysctls(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the values in force."""
        paths = {str(sysctl_path(key)): key for key in keys}
        found = self.agent.call("settings", paths=list(paths))
        return {paths[path]: value for path, value in found.items()}

    def set_sysctls(self, values: Mapping[str, str | int]) -> dict[str, str]:
        """Set kernel settings; the agent restores them at its end, whatever ends it."""
        keys = {str(sysctl_path(key)): key for key in values}
        before = self.set_files({path: values[key] for path, key in keys.items()})
        return {keys[path]: value for path, value in before.items()}

    def set_files(self, values: Mapping[str, str | int]) -> dict[str, str]:
        """Set files under /proc/sys or /sys, such as a frequency governor, as `set_sysctls` does.

        Return what they were. Raises UserError if the kernel refuses a value.
        """
        try:
            return self.agent.call("set", values={path: str(of) for path, of in values.items()})
        except OSError as error:
            raise UserError(
                f"{error.filename} cannot be set: {error.strerror}",
                where=f"host {self.name}",
                remedy="log in there as root, or leave this setting out of the testbed",
            ) from None

    def affinity(self) -> list[int]:
        """Return the CPUs that programs may use."""
        return self.agent.call("affinity")

    def raise_descriptors(self, wanted: int) -> int:
        """Raise the limit of open files of what is started from now on."""
        return self.agent.call("raise_descriptors", wanted=wanted)

    def hold(self, folder: str) -> bool:
        """Lock a folder until the session ends."""
        return self.agent.call("hold", path=folder)

    def clock_ns(self) -> int:
        """Return the host's monotonic clock, as it was some time during this call."""
        return self.agent.call("clock")["monotonic_ns"]

    def clocks(self, exchanges: int = 20) -> Clocks:
        """Compare the host's clocks with ours: `Connection.clocks`."""
        return self.agent.clocks(exchanges)

    def fetch(self, path: str | Path, to: Path) -> None:
        """Bring a file here, in place of what `to` was; OSError if it cannot be read."""
        offset = 0
        with to.open("wb") as file:
            while data := wire.unpack(
                self.agent.call("fetch", path=str(path), offset=offset)["data"]
            ):
                file.write(data)
                offset += len(data)

    def fetch_all(self, folder: str | Path, to: Path) -> list[Path]:
        """Bring the files of a folder and below here, under `to`; return where they are."""
        names = self.agent.call("files", folder=str(folder))
        for name in names:
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            self.fetch(Path(folder, name), to / name)
        return [to / name for name in names]

    def make_folder(self, path: str | Path) -> None:
        """Make a folder there and those above it; nothing if it is there."""
        self.agent.call("make_folder", path=str(path))

    def put(self, source: Path, path: str | Path) -> None:
        """Write a file of ours there, with its mode; its folder must exist."""
        mode = source.stat().st_mode & 0o777
        with source.open("rb") as file:
            self.agent.call("write", path=str(path), data=wire.pack(b""), mode=mode)
            while data := file.read(wire.CHUNK_BYTES):
                offset = file.tell() - len(data)
                self.agent.call("write", path=str(path), data=wire.pack(data), offset=offset)

    def write(self, path: str | Path, text: str) -> None:
        """Write a file there; OSError if that cannot be written."""
        self.put_bytes(text.encode(), path)

    def put_bytes(self, content: bytes, path: str | Path) -> None:
        """Write a file there, of any size; OSError if that cannot be written."""
        self.agent.call("write", path=str(path), data=wire.pack(b""))
        for at in range(0, len(content), wire.CHUNK_BYTES):
            part = wire.pack(content[at : at + wire.CHUNK_BYTES])
            self.agent.call("write", path=str(path), data=part, offset=at)

    def close(self) -> dict | None:
        """End the session and all that it started: `Connection.close`."""
        return self.agent.close()

    def __enter__(self) -> "Remote":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


REFUSALS = MappingProxyType({
    "python": ("its Python is {detail}, and the agent needs 3.11",
               "install a newer one there and name it"),
    "busy": ("another controller holds this host", "wait for it to end, or end it"),
    "namespaces": ("no permission to make namespaces there: {detail}",
                   "log in there as root, or let users make namespaces: sysctl "
                   "kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000 "
                   "(on Ubuntu also kernel.apparmor_restrict_unprivileged_userns=0)"),
    "folder": ("no folder for the agent there: {detail}",
               "name another folder, one that you may write to"),
})  # fmt: skip
"""What the agent cannot work without: reason -> (what is wrong, what to do)."""


def refusal(name: str, reason: str, detail: str) -> UserError:
    """Return the error that the agent of a host greeted with a refusal."""
    problem, remedy = REFUSALS[reason]
    return UserError(problem.format(detail=detail), f"host {name}", remedy)
