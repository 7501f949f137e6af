"""A host that an agent serves: another machine, or namespaces of this one.

A host need not share the caller's files, clock or process ids: paths, pids and times in arguments
and results are the host's. A call costs a round trip to the agent, and what its docstring says.
"""

import itertools
import shlex
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from deathmatch.agent import children, wire
from deathmatch.agent.diag import Listener
from deathmatch.errors import UserError
from deathmatch.hosts.clocks import Clocks
from deathmatch.hosts.connection import Connection
from deathmatch.hosts.process import Process

GOVERNORS = "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor"

_sockets = itertools.count()


class HostSocket:
    """A TCP connection that a host opens for the caller, over the link under test.

    It has the part of socket.socket that checks use, and raises the errors of the host's socket.
    Data also cross the channel to the agent, so it is for checks, never for load.
    """

    def __init__(self, agent: Connection, address: str, port: int, patience_s: float):
        self._agent, self._patience_s = agent, patience_s
        self._number = next(_sockets)
        self._agent.call(
            "connect", number=self._number, address=address, port=port, patience_s=patience_s
        )
        self._open = True

    def settimeout(self, patience_s: float) -> None:
        """Set the time-out of later calls, after which they raise TimeoutError."""
        self._patience_s = patience_s

    def sendall(self, data: bytes) -> None:
        """Send all of it."""
        for start in range(0, len(data), wire.CHUNK_BYTES):
            part = data[start : start + wire.CHUNK_BYTES]
            self._agent.call(
                "transmit", number=self._number, data=wire.pack(part), patience_s=self._patience_s
            )

    def recv(self, limit_bytes: int) -> bytes:
        """Return the next data, b"" at the end."""
        answer = self._agent.call(
            "receive", number=self._number, limit_bytes=limit_bytes, patience_s=self._patience_s
        )
        return wire.unpack(answer["data"])

    def close(self) -> None:
        """Close it, if it is open."""
        if self._open:
            self._open = False
            self._agent.call("hang_up", number=self._number)

    def __enter__(self) -> "HostSocket":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


Connected = socket.socket | HostSocket
"""A TCP connection, of this machine or of a host."""

Dial = Callable[[str, int, float], Connected]
"""Opens a TCP connection to an address and a port, with a time-out in seconds: `Host.connect`."""


class Host:
    """One place where programs run.

    `enter` are the words before a command by which the caller would run it there; with `quoted` the
    command is one word. With `shared` the host has the caller's files. `environment` is the default
    of programs; None is the agent's. `folder` is the session's, and is removed at its end.
    """

    def __init__(
        self, agent: Connection, enter: Sequence[str], quoted: bool = False, shared: bool = False
    ):  # fmt: skip
        self.name = agent.name
        self.shared = shared
        self.environment: Mapping[str, str] | None = None
        self.agent = agent
        self.folder = Path(agent.hello["folder"])
        self._enter, self._quoted = tuple(enter), quoted
        self._numbers = itertools.count()

    def command(self, words: Sequence[str], cpus: Sequence[int] = ()) -> list[str]:
        """Return the words by which the caller would run `words` there, on `cpus` if any are given.

        They are for logs and messages; the call makes no round trip.
        """
        pinned = children.pinned(words, cpus)
        return [*self._enter, *([shlex.join(pinned)] if self._quoted else pinned)]

    def run(self, *words: str) -> str:
        """Run a command to its end; return its standard output.

        Costs a process. Raises UserError, with the command and its standard error, if it fails.
        """
        done = self.agent.call("run", words=words, environment=self._environment(None))
        if done["status"] != 0:
            problem = done["stderr"].strip() or f"exit status {done['status']}"
            raise UserError(f"`{shlex.join(words)}` failed: {problem}", where=f"host {self.name}")
        return done["stdout"]

    def start(
        self, words: Sequence[str], *, output: Path | None = None, cpus: Sequence[int] = (),
        folder: Path | None = None, environment: Mapping[str, str] | None = None,
        talk: bool = False, bounded: bool = False, at_ns: int | None = None,
    ) -> Process:  # fmt: skip
        """Start a program in a process group of its own; return at once.

        `Process.wait` and `Process.collect` append its output to `output`, a file of the caller:
        all of it, or with `bounded` its beginning and its end (`agent.children`). The program works
        in `folder`, default: the session's, without input, with `environment`, default: the host's.
        With `talk`, the caller uses its input and standard output; `output` then gets its standard
        error, which without `output` is mixed with standard output. With `at_ns`, it begins at that
        instant of the host's monotonic clock. Raises OSError if there is no such program; with
        `at_ns` the program ends with status 126 or 127 instead.
        """
        process = Process(self.agent, next(self._numbers), output, self.shared)
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
        """Return the pids of all living processes of the session, without `other`.

        The namespace's first process and zombies are left out. Reads every process: some
        milliseconds.
        """
        return self.agent.call("processes", but=list(other))

    def kill(self, pids: Iterable[int], patience_s: float) -> None:
        """Kill processes; return when they have ended, at the latest after `patience_s`."""
        self.agent.call("kill", pids=list(pids), patience_s=patience_s)

    def usage(self, pid: int) -> dict[str, int]:
        """Return cpu_ns, rss_bytes, descriptors and threads of one process; zeros if it is gone.

        CPU time includes that of threads that ended (clock_getcpuclockid(3)). Takes some tens of
        microseconds; before Linux 6.2 longer with many descriptors.
        """
        return self.agent.call("usage", pid=pid)

    def pss_bytes(self, pids: Iterable[int]) -> int | None:
        """Return the memory of processes, shared pages counted once; None if unknown.

        The kernel reads every page: about a millisecond for 100 MB.
        """
        return self.agent.call("pss_bytes", pids=list(pids))

    def threads(self, pid: int) -> list[int]:
        """Return the ids of the process's threads; OSError if it is gone."""
        return self.agent.call("threads", pid=pid)

    def waits(self, pid: int) -> set[int]:
        """Return the numbers of the system calls in which the process's threads are.

        From /proc/<pid>/task/<tid>/syscall (proc(5)); numbers depend on the architecture.
        """
        return set(self.agent.call("waits", pid=pid))

    def read(self, path: str | Path) -> str:
        """Return a file's text, with U+FFFD for invalid UTF-8; raise OSError if unreadable."""
        return self.agent.call("read", path=str(path))

    def counters(self) -> dict[str, dict[str, int]]:
        """Return the network's counters: {file: {"group counter": value}}.

        The files are netstat, snmp and sockstat of proc(5) in the host's namespace, and count from
        its beginning. Takes less than a millisecond.
        """
        return self.agent.call("counters")

    def sample(
        self, pids: Sequence[int] | None = None, port: int | None = None,
        cpus: Sequence[int] | None = None, group: str = "", settled: bool = False,
    ) -> dict[str, Any]:  # fmt: skip
        """Return the kernel's counts, in one call: `agent.kernel.Sampling.take`.

        `pids` are the processes; default: all that `processes` returns.
        """
        return self.agent.call(
            "sample", pids=pids, port=port, cpus=cpus, group=group, settled=settled
        )

    def listeners(self, port: int = 0) -> list[Listener]:
        """Return the listening TCP sockets, default: of all ports."""
        return [Listener(*fields) for fields in self.agent.call("listeners", port=port)]

    def count(self, state: int, port: int) -> int:
        """Return how many sockets of a local port are in a state of `agent.diag`.

        The kernel reads all of its connections: 10,000 take some milliseconds.
        """
        return self.agent.call("count", state=state, port=port)

    def connect(self, address: str, port: int, patience_s: float) -> HostSocket:
        """Open a TCP connection from there; raise OSError as socket.create_connection does."""
        return HostSocket(self.agent, address, port, patience_s)

    def keep_to(self, cpus: Sequence[int]) -> None:
        """Let the agent, and programs started without `cpus`, use only these CPUs."""
        self.agent.call("keep_to", cpus=list(cpus))

    def sysctls(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the values in force; "" for a setting that the kernel lacks."""
        paths = {_sysctl_path(key): key for key in keys}
        values = self.agent.call("settings", paths=list(paths))
        return {paths[path]: value for path, value in values.items()}

    def set_sysctls(self, values: Mapping[str, str | int]) -> None:
        """Set the kernel settings that differ; the agent restores them, however it ends.

        A setting that the kernel lacks is left out, as `sysctls` shows. Raises UserError if the
        kernel refuses a value.
        """
        in_force = self.sysctls(values)
        self._set_files({
            _sysctl_path(key): value for key, value in values.items()
            if in_force[key].split() != str(value).split()
        })  # fmt: skip

    def _set_files(self, values: Mapping[str, str | int]) -> None:
        try:
            self.agent.call("set", values={path: str(value) for path, value in values.items()})
        except OSError as error:
            raise UserError(
                f"{error.filename} cannot be set: {error.strerror}",
                where=f"host {self.name}",
                remedy="log in there as root, or leave this setting out of the testbed",
            ) from None

    def set_governor(self, governor: str) -> None:
        """Set the frequency governor of all CPUs, as `set_sysctls` does."""
        files = self.run("sh", "-c", f"ls {GOVERNORS} 2>/dev/null || true").split()
        differing = [file for file in files if self.read(file).strip() != governor]
        self._set_files(dict.fromkeys(differing, governor))

    def affinity(self) -> list[int]:
        """Return the numbers of the CPUs that its programs may use, sorted."""
        return self.agent.call("affinity")

    def raise_descriptors(self, wanted: int) -> int:
        """Raise the limit of open files for programs started from now on; return the new limit."""
        return self.agent.call("raise_descriptors", wanted=wanted)

    def hold(self, folder: str) -> bool:
        """Lock a folder until the session ends; return whether it still exists."""
        return self.agent.call("hold", path=folder)

    def clocks(self, exchanges: int = 20) -> Clocks:
        """Compare the host's clocks with ours: `Connection.clocks`."""
        return self.agent.clocks(exchanges)

    def fetch(self, path: str | Path, to: Path) -> None:
        """Copy a file here, replacing `to`; raise OSError if it cannot be read."""
        offset = 0
        with to.open("wb") as file:
            while data := wire.unpack(
                self.agent.call("fetch", path=str(path), offset=offset)["data"]
            ):
                file.write(data)
                offset += len(data)

    def fetch_all(self, folder: str | Path, to: Path) -> list[Path]:
        """Copy all files of a folder, recursively, to the folder `to`; return their paths here."""
        names = self.agent.call("files", folder=str(folder))
        for name in names:
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            self.fetch(Path(folder, name), to / name)
        return [to / name for name in names]

    def make_folder(self, path: str | Path) -> None:
        """Make a folder there and its parents, if they do not exist."""
        self.run("mkdir", "--parents", str(path))

    def write(self, path: str | Path, content: bytes) -> None:
        """Write a file of any size there; raise OSError if it cannot be written."""
        for start in range(0, len(content) or 1, wire.CHUNK_BYTES):
            part = wire.pack(content[start : start + wire.CHUNK_BYTES])
            self.agent.call("write", path=str(path), data=part, offset=start)

    def close(self) -> dict | None:
        """End the session and all programs that it started: `Connection.close`."""
        return self.agent.close()

    def __enter__(self) -> "Host":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def dial(address: str, port: int, patience_s: float) -> socket.socket:
    """Open a TCP connection from here: the `Dial` of this machine."""
    return socket.create_connection((address, port), patience_s)


def _sysctl_path(key: str) -> str:
    return str(Path("/proc/sys", *key.split(".")))
