"""The programs that a session starts: their ends, their input, and their output of limited size.

A program prints into a file: a pipe could fill up, and the end of its reader is a signal. From
time to time the middle of the file is removed; the program is not affected, as it appends.
"""

import contextlib
import itertools
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

from deathmatch.agent import launch

Report = Callable[[dict[str, Any]], None]

LIMIT_BYTES = 10_000_000
# The parts of a file that are kept: its beginning and its end.
HEAD_BYTES = 1_000_000
TAIL_BYTES = 65_536
_INTERVAL_S = 0.1


class Child:
    """A started program; `status` is set once it has ended, -N after signal N."""

    def __init__(self, popen: subprocess.Popen):
        self.popen = popen
        self.ended = threading.Event()
        # The threads that report its output and how late it began.
        self.readers: list[threading.Thread] = []
        self.status: int | None = None

    @property
    def pid(self) -> int:
        """Its process id in the session's namespace."""
        return self.popen.pid


class Children:
    """The programs, by the numbers that the controller gave them; `folder` has their output.

    `report` takes the events: `said` with a line of a program that talks, "" at its end; `began`
    with a program's lateness; `ended`, which comes last. As the first process of a pid namespace,
    this process also reaps orphans.
    """

    def __init__(self, folder: Path, report: Report):
        self._folder, self._report_event = folder, report
        self._of: dict[int, Child] = {}
        self._files: dict[int, Path] = {}
        self._outputs = Outputs()
        # Held from a program's start until it is registered, and while a program is reaped, so that
        # no signal reaches a reused pid.
        self._changing = threading.RLock()
        self._any = threading.Event()
        # The commands of `run` have negative numbers.
        self._numbers = itertools.count(-1, -1)
        threading.Thread(target=self._reap, daemon=True).start()

    def start(
        self, number: int, words: Sequence[str], *, cpus: Sequence[int] = (),
        folder: str | None = None, environment: dict[str, str] | None = None, talk: bool = False,
        output: bool = False, path: str = "", bounded: bool = False, at_ns: int | None = None,
    ) -> dict[str, int]:  # fmt: skip
        """Start a program in a process group of its own; return its {"pid"}.

        With `output`, its output is appended to the file `path`, default: one of the session's;
        with `bounded`, its size is limited (`Outputs`). With `talk`, its standard output comes as
        events and its input is open. With `at_ns`, it begins at that instant of this host's
        monotonic clock. Raises OSError if there is no such program.
        """
        with contextlib.ExitStack() as files, self._changing:
            passed, readers = (), []
            if at_ns is not None:
                began, late = os.pipe()
                files.callback(os.close, late)
                passed = (late,)
                words = [sys.executable, "-ESs", launch.__file__, str(at_ns), str(late), *words]
                readers.append(partial(self._began, number, began))
            printed = subprocess.DEVNULL
            if output:
                self._files[number] = kept = Path(path) if path else self._folder / f"{number}.out"
                if bounded:
                    self._outputs.watch(kept)
                printed = files.enter_context(kept.open("ab"))
            child = self._spawn(
                number, pinned(words, cpus), cwd=folder, env=environment, pass_fds=passed,
                stdin=subprocess.PIPE if talk else subprocess.DEVNULL,
                stdout=subprocess.PIPE if talk else printed,
                stderr=subprocess.STDOUT if talk and not output else printed,
            )  # fmt: skip
            if talk:
                readers.append(partial(self._listen, number, child.popen.stdout))
            child.readers = [threading.Thread(target=reader, daemon=True) for reader in readers]
            for thread in child.readers:
                thread.start()
        return {"pid": child.pid}

    def _spawn(self, number: int, words: Sequence[str], **options: Any) -> Child:
        with self._changing:
            popen = subprocess.Popen(words, start_new_session=True, **options)
            child = self._of[number] = Child(popen)
        self._any.set()
        return child

    def run(
        self, words: Sequence[str], environment: dict[str, str] | None = None
    ) -> dict[str, Any]:  # fmt: skip
        """Run a command to its end, without input; return its status, stdout and stderr.

        `processes` leaves it out, as it does not belong to the trial.
        """
        with (
            tempfile.TemporaryFile(dir=self._folder) as stdout,
            tempfile.TemporaryFile(dir=self._folder) as stderr,
        ):
            number = next(self._numbers)
            child = self._spawn(
                number, words, env=environment, stdin=subprocess.DEVNULL, stdout=stdout,
                stderr=stderr,
            )  # fmt: skip
            child.ended.wait()
            del self._of[number]
            result = {"status": child.status}
            for name, file in (("stdout", stdout), ("stderr", stderr)):
                file.seek(0)
                result[name] = file.read().decode(errors="replace")
        return result

    def own(self) -> set[int]:
        """Return the pids of running commands of `run`."""
        return {child.pid for number, child in list(self._of.items()) if number < 0}

    def signal(self, number: int, signal: int, group: bool = False) -> None:
        """Send a signal to a program, or to its process group; do nothing if it has ended."""
        self._signal(self._of[number], signal, group)

    def _signal(self, child: Child, number: int, group: bool) -> None:
        with self._changing:
            if child.status is None:
                (os.killpg if group else os.kill)(child.pid, number)

    def send(self, number: int, text: str) -> None:
        """Write to a program's input; raise OSError if that is closed."""
        stream = self._of[number].popen.stdin
        stream.write(text.encode())
        stream.flush()

    def end_input(self, number: int) -> None:
        """Close a program's input."""
        with contextlib.suppress(OSError):
            self._of[number].popen.stdin.close()

    def file(self, number: int) -> Path:
        """Return the path of a program's output; the file may not exist."""
        return self._files[number]

    def left_out_bytes(self, number: int) -> int:
        """Return about how much of a program's output was removed from its file."""
        return self._outputs.left_out_bytes(self._files[number])

    def _listen(self, number: int, stdout: IO[bytes]) -> None:
        for text in stdout:
            self._report_event(
                {"event": "said", "process": number, "text": text.decode(errors="replace")}
            )
        self._report_event({"event": "said", "process": number, "text": ""})

    def _began(self, number: int, began: int) -> None:
        with open(began) as pipe:
            late = pipe.read()
        if late:
            self._report_event({"event": "began", "process": number, "late_ns": int(late)})

    def _reap(self) -> None:
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
            except ChildProcessError:
                self._any.wait()
                self._any.clear()
                continue
            with self._changing:
                reaped = self._reaped(ended.si_pid)
            if reaped:
                threading.Thread(target=self._report, args=reaped, daemon=True).start()

    def _reaped(self, pid: int) -> tuple[int, Child] | None:
        """Reap what has ended; return it with its number, None if it is somebody's left child."""
        try:
            _, status = os.waitpid(pid, 0)
        except ChildProcessError:
            # Its program does not exist: Popen has reaped it.
            return None
        for number, child in list(self._of.items()):
            if child.pid == pid and child.status is None:
                child.status = child.popen.returncode = os.waitstatus_to_exitcode(status)
                return number, child
        return None

    def _report(self, number: int, child: Child) -> None:
        ended_ns = time.monotonic_ns()
        if number >= 0:
            # A daemon that it left may keep its output open for ever.
            for reader in child.readers:
                reader.join(LAST_WORDS_S)
            self._report_event(
                {"event": "ended", "process": number, "status": child.status, "at_ns": ended_ns}
            )
        child.ended.set()


LAST_WORDS_S = 1.0
"""How long the event `ended` waits for the rest of a program's output."""


def pinned(words: Sequence[str], cpus: Sequence[int]) -> list[str]:
    """Return the words that run a command on these CPUs; default: on any."""
    return [*(["taskset", "--cpu-list", ",".join(map(str, cpus))] if cpus else []), *words]


def kill(pids: Iterable[int], patience_s: float) -> None:
    """Kill processes; return when they have ended, at the latest after `patience_s`."""
    deadline = time.monotonic() + patience_s
    killed = []
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            killed.append(os.pidfd_open(pid))
            os.kill(pid, signal.SIGKILL)
    for descriptor in killed:
        ended = select.poll()
        ended.register(descriptor, select.POLLIN)
        ended.poll(max(0.0, deadline - time.monotonic()) * 1000)
        os.close(descriptor)


@dataclass
class Output:
    """The file of a program's output; `left_out_bytes` is about how much was removed from it."""

    file: Path
    left_out_bytes: int = 0

    def check(self) -> None:
        """Shorten the file if it is larger than LIMIT_BYTES; else costs one system call.

        Output between the last read and the truncation is lost, and is not counted.
        """
        size = self.file.stat().st_size if self.file.exists() else 0
        if size <= LIMIT_BYTES:
            return
        with self.file.open("r+b") as log:
            log.seek(size - TAIL_BYTES)
            # The file may have grown meanwhile.
            tail = log.read().partition(b"\n")[2]
            size = log.tell()
            log.truncate(HEAD_BYTES)
        self.left_out_bytes += size - HEAD_BYTES - len(tail)
        with self.file.open("ab") as log:
            note = (
                f"[deathmatch: about {self.left_out_bytes / 1e6:,.0f} MB of what the server "
                f"printed are left out here: no more than {LIMIT_BYTES / 1e6:.0f} MB are kept]"
            )
            log.write(f"\n{note}\n".encode() + tail)


class Outputs:
    """A thread that checks all outputs; it starts with the first one."""

    def __init__(self) -> None:
        self._of: dict[Path, Output] = {}
        self._changing = threading.Lock()
        self._thread = threading.Thread(target=self._loop, daemon=True)

    def watch(self, file: Path) -> None:
        """Limit a file's size from now on."""
        with self._changing:
            self._of.setdefault(file, Output(file))
            if not self._thread.is_alive():
                self._thread.start()

    def left_out_bytes(self, file: Path) -> int:
        """Return about how much was removed from a file so far; 0 if it is not watched."""
        with self._changing:
            if file not in self._of:
                return 0
            # It may have grown much since the last check.
            self._of[file].check()
            return self._of[file].left_out_bytes

    def _loop(self) -> None:
        while True:
            time.sleep(_INTERVAL_S)
            with self._changing:
                for output in self._of.values():
                    output.check()
