"""A place where something runs: what a trial may ask of it, whichever machine it is.

A host need not share the caller's files, clock or process ids: paths, pids and times that it takes
and gives are its own, and what a program prints is carried to a file of the caller's.
"""

import contextlib
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import psutil

from deathmatch.agent import diag, kernel
from deathmatch.agent.diag import Listener
from deathmatch.agent.sampling import Sampling
from deathmatch.errors import UserError


class Process(Protocol):
    """A program that a host was asked to start. Its pid is the host's."""

    pid: int

    def wait(self, patience_s: float | None = None) -> int | None:
        """Return its exit status, -N after signal N; None if it has not ended within `patience_s`.

        Without `patience_s`, waits for its end; with 0, costs one system call.
        """

    def collect(self) -> None:
        """Bring what it has printed so far to its `output`."""

    def signal(self, number: signal.Signals, group: bool = False) -> None:
        """Send it a signal, or to all of its process group; nothing if it has ended."""

    def kill(self) -> None:
        """Kill it and wait for its end."""

    def send(self, text: str) -> None:
        """Write to its standard input; OSError if it has closed that. Only if it was to `talk`."""

    def receive(self, patience_s: float) -> str | None:
        """Return its next line of output, "" at the end, None if none begins within `patience_s`.

        Only if it was to `talk`.
        """

    def finish(self, patience_s: float) -> str:
        """End its input; return what it still says, killing it after `patience_s`.

        Only if it was to `talk`.
        """


class Connected(Protocol):
    """The part of socket.socket that checks use."""

    def settimeout(self, patience_s: float) -> None:
        """Wait that long for what is sent or received from now on; TimeoutError after it."""

    def sendall(self, data: bytes) -> None:
        """Send all of it."""

    def recv(self, limit_bytes: int) -> bytes:
        """Return what comes next, nothing at the end."""

    def close(self) -> None:
        """Close it."""


Dial = Callable[[str, int, float], Connected]
"""Opens a TCP connection to an address and a port, with a patience in seconds: `Host.connect`."""


class Host(Protocol):
    """One place where programs run.

    On this machine a call costs what its docstring says; on another one, a round trip more.
    """

    name: str

    def command(self, words: Sequence[str], cpus: Sequence[int] = ()) -> list[str]:
        """Return the words by which the caller runs `words` there, on those CPUs if any are given.

        For logs and messages; costs nothing.
        """

    def run(self, *words: str) -> str:
        """Run a command to its end; return what it printed.

        Costs a process. Raises UserError, with the command and what it said, if it fails.
        """

    def start(
        self, words: Sequence[str], *, output: Path | None = None, cpus: Sequence[int] = (),
        folder: Path | None = None, environment: Mapping[str, str] | None = None,
        talk: bool = False, bounded: bool = False,
    ) -> Process:  # fmt: skip
        """Start a program in a process group of its own; return at once.

        What it prints is appended to `output`, a file of the caller's, which holds all of it once
        the program has ended, or the beginning and the end of it if it is to be `bounded`
        (`agent.output`). It works in `folder`, a path of the host, with no input and the
        caller's environment, or `environment` in its place. With `talk`, its input and standard
        output are the caller's to use; `output` then gets its standard error, which without
        `output` comes with the rest. Raises OSError if there is no such program, where the host
        can tell; where it cannot, the process ends with status 126 or 127.
        """

    def processes(self, other: Iterable[int] = ()) -> list[int]:
        """Return the pids of all that lives in the trial's sandbox there, but for `other`.

        Neither the sandbox's first process nor what has ended and waits to be reaped is counted.
        Reads every process: some milliseconds.
        """

    def kill(self, pids: Iterable[int], patience_s: float) -> None:
        """Kill processes; return when they have ended, at the latest after `patience_s`.

        With 0 at once, and whoever started them still learns how they ended.
        """

    def usage(self, pid: int) -> dict[str, int]:
        """Return cpu_ns, rss_bytes, descriptors and threads of one process; zeros if it is gone.

        Some tens of microseconds, on Linux before 6.2 longer with many descriptors.
        """

    def threads(self, pid: int) -> list[int]:
        """Return the ids of the process's threads; OSError if it is gone."""

    def waits(self, pid: int) -> set[int]:
        """Return the numbers of the system calls that the process's threads are in; maybe none.

        The numbers are the machine's (/proc/<pid>/task/<tid>/syscall: proc(5)).
        """

    def read(self, path: str) -> str:
        """Return a file's text, what is not UTF-8 replaced; raises OSError if it cannot be read."""

    def counters(self) -> dict[str, dict[str, int]]:
        """Return the network's counters: {file: {"group counter": value}}.

        The files are netstat, snmp and sockstat of proc(5), of the host's namespace, which they
        count from its beginning. Less than a millisecond.
        """

    def sample(
        self, pids: Sequence[int] | None = None, port: int | None = None,
        cpus: Sequence[int] | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Return what the kernel has counted, in one call: `agent.sampling.Sampling.take`.

        Of the processes `pids`, or of all that `processes` returns.
        """

    def machine(self, cpus: Iterable[int]) -> dict[str, int | float]:
        """Return what the whole machine's kernel has counted since it was started.

        cpu_<mode>_us of all CPUs and server_cpus_<mode>_us of `cpus`, for each of MODES (proc(5),
        /proc/stat, in ticks); context_switches, interrupts; and load_average, of the last minute.
        Some tens of microseconds for each CPU.
        """

    def listeners(self, port: int = 0) -> list[Listener]:
        """Return the listening TCP sockets, those of one port if it is given; one call."""

    def count(self, state: int, port: int) -> int:
        """Return how many sockets of a local port are in a state of `agent.diag`.

        The kernel walks through all of its connections: 10,000 take some milliseconds.
        """

    def connect(self, address: str, port: int, patience_s: float) -> Connected:
        """Open a TCP connection from there; OSError as socket.create_connection raises it."""

    def sysctls(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the values in force; "" for one that the kernel lacks."""

    def set_sysctls(self, values: Mapping[str, str | int]) -> dict[str, str]:
        """Set kernel settings; return what they were, to be set again: `set_sysctls(before)`.

        One that the kernel lacks is left out: it has its own behaviour, which `sysctls` shows.
        Raises UserError if the kernel refuses a value.
        """

    def affinity(self) -> list[int]:
        """Return the numbers of the CPUs that its programs may use, sorted."""

    def raise_descriptors(self, wanted: int) -> int:
        """Raise the limit of open files of what is started from now on; return what was got."""

    def clock_ns(self) -> int:
        """Return its monotonic clock; only differences of one host's own mean anything."""

    def hold(self, folder: str) -> bool:
        """Lock a folder until we leave the host or end; return whether it is still there."""


@dataclass(frozen=True)
class LocalProcess:
    """A process of this machine."""

    popen: subprocess.Popen

    @property
    def pid(self) -> int:
        """The process id."""
        return self.popen.pid

    def wait(self, patience_s: float | None = None) -> int | None:
        """Return the exit status, None if it has not ended within `patience_s`."""
        try:
            return self.popen.wait(patience_s)
        except subprocess.TimeoutExpired:
            return None

    def collect(self) -> None:
        """Do nothing: it writes there itself."""

    def signal(self, number: signal.Signals, group: bool = False) -> None:
        """Send a signal, to its group if asked."""
        if self.popen.poll() is None:
            (os.killpg if group else os.kill)(self.pid, number)

    def kill(self) -> None:
        """Kill it and wait."""
        self.popen.kill()
        self.popen.wait()

    def send(self, text: str) -> None:
        """Write to its input, at once."""
        self.popen.stdin.write(text)
        self.popen.stdin.flush()

    def receive(self, patience_s: float) -> str | None:
        """Return its next line."""
        ready, _, _ = select.select([self.popen.stdout], [], [], patience_s)
        return self.popen.stdout.readline() if ready else None

    def finish(self, patience_s: float) -> str:
        """End its input and return the rest."""
        try:
            text, _ = self.popen.communicate(timeout=patience_s)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            text, _ = self.popen.communicate()
        return text


@dataclass(frozen=True)
class Local:
    """This machine, as the calling process sees it: within a sandbox, the sandbox's namespaces."""

    name: str = "server"

    def command(self, words: Sequence[str], cpus: Sequence[int] = ()) -> list[str]:
        """Return the words, pinned by taskset(1)."""
        pinned = ["taskset", "--cpu-list", ",".join(map(str, cpus))] if cpus else []
        return [*pinned, *words]

    def run(self, *words: str) -> str:
        """Run a command; UserError if it fails."""
        command = self.command(words)
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise UserError(
                f"`{' '.join(command)}` failed: {done.stderr.strip()}",
                where="testbed",
                remedy="the testbed needs Linux network namespaces, veth and iproute2",
            )
        return done.stdout

    def start(
        self, words: Sequence[str], *, output: Path | None = None, cpus: Sequence[int] = (),
        folder: Path | None = None, environment: Mapping[str, str] | None = None,
        talk: bool = False, bounded: bool = False,
    ) -> LocalProcess:  # fmt: skip
        """Start a program; nothing keeps its output within bounds."""
        with contextlib.ExitStack() as files:
            printed = files.enter_context(output.open("ab")) if output else subprocess.DEVNULL
            popen = subprocess.Popen(
                self.command(words, cpus), cwd=folder, env=environment, start_new_session=True,
                stdin=subprocess.PIPE if talk else subprocess.DEVNULL,
                stdout=subprocess.PIPE if talk else printed,
                stderr=subprocess.STDOUT if talk and not output else printed,
                text=True,
            )  # fmt: skip
        return LocalProcess(popen)

    def processes(self, other: Iterable[int] = ()) -> list[int]:
        """Return the living pids of this pid namespace."""
        return kernel.processes(other)

    def kill(self, pids: Iterable[int], patience_s: float) -> None:
        """Kill processes and wait for them."""
        killed = []
        for pid in pids:
            with contextlib.suppress(psutil.NoSuchProcess):
                process = psutil.Process(pid)
                process.kill()
                killed.append(process)
        # Waiting takes the exit status of what this process has started.
        if patience_s:
            psutil.wait_procs(killed, timeout=patience_s)

    def usage(self, pid: int) -> dict[str, int]:
        """Return what one process uses.

        Its CPU time is that of its clock (clock_getcpuclockid(3)), which counts nanoseconds, those
        of threads that ended included, where /proc/stat counts ticks.
        """
        return kernel.usage(pid)

    def threads(self, pid: int) -> list[int]:
        """Return the ids of the threads."""
        return kernel.threads(pid)

    def waits(self, pid: int) -> set[int]:
        """Return the numbers of the system calls that the threads are in."""
        return set(kernel.waits(pid))

    def read(self, path: str) -> str:
        """Return a file's text."""
        return Path(path).read_text(errors="replace")

    def counters(self) -> dict[str, dict[str, int]]:
        """Return the network's counters."""
        return kernel.counters()

    def sample(
        self, pids: Sequence[int] | None = None, port: int | None = None,
        cpus: Sequence[int] | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Return a sample, the SYN queue's length always among it."""
        return Sampling().take(self.processes() if pids is None else pids, port, cpus)

    def machine(self, cpus: Iterable[int]) -> dict[str, int | float]:
        """Return what this machine's kernel has counted."""
        return kernel.machine(cpus)

    def listeners(self, port: int = 0) -> list[Listener]:
        """Return the listening sockets."""
        return diag.listeners(port)

    def count(self, state: int, port: int) -> int:
        """Return how many sockets are in a state."""
        return diag.count(state, port)

    def connect(self, address: str, port: int, patience_s: float) -> socket.socket:
        """Open a connection."""
        return dial(address, port, patience_s)

    def sysctls(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the values in force."""
        return {key: path.read_text().strip() if (path := sysctl_path(key)).exists() else ""
                for key in keys}  # fmt: skip

    def set_sysctls(self, values: Mapping[str, str | int]) -> dict[str, str]:
        """Set kernel settings; return what they were."""
        before = {key: value for key, value in self.sysctls(values).items() if value}
        for key, value in values.items():
            script = 'test ! -e "$1" || echo "$2" > "$1"'
            self.run("sh", "-c", script, "sh", str(sysctl_path(key)), str(value))
        return before

    def affinity(self) -> list[int]:
        """Return the CPUs that this process may use."""
        return sorted(os.sched_getaffinity(0))

    def raise_descriptors(self, wanted: int) -> int:
        """Raise this process's limit of open files towards `wanted`; return what was got."""
        return kernel.raise_descriptors(wanted)

    def clock_ns(self) -> int:
        """Return this machine's monotonic clock."""
        return time.monotonic_ns()

    def hold(self, folder: str) -> bool:
        """Lock a folder until this process ends."""
        return kernel.hold(folder, _HELD)


_HELD: list[int] = []
"""Descriptors of the folders that this process holds."""


def sysctl_path(key: str) -> Path:
    """Return the file of a kernel setting."""
    return Path("/proc/sys", *key.split("."))


def dial(address: str, port: int, patience_s: float) -> socket.socket:
    """Open a TCP connection from here: the `Dial` of this machine."""
    return socket.create_connection((address, port), patience_s)
