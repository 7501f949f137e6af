"""What the jobs of a run write, as it comes; on a terminal, below it one line that stays."""

import threading
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from deathmatch.run import progress
from deathmatch.run.state import Run, clock

# Once a second: a trial is measured on the same machine.
INTERVAL_S = 1


class Screen:
    """Shows what the jobs write into their logs, until it is stopped."""

    def __init__(self, run: Run | None, stream: TextIO, live: bool) -> None:
        """Take the run and the stream; `live` asks for the line, which only a terminal shows."""
        self.stream = stream
        self.console = Console(file=stream, highlight=False, markup=False, emoji=False)
        able = live and self.console.is_terminal and not self.console.is_dumb_terminal
        self.live = Live(
            get_renderable=lambda: status(run), console=self.console, auto_refresh=False,
            transient=True, redirect_stdout=False, redirect_stderr=False,
        ) if able else None  # fmt: skip
        self.lines = False
        """Whether the line is shown."""
        self.logs: dict[int, list[str]] = {}
        # How much of each log has been shown, in bytes.
        self.shown: dict[str, int] = {}
        self.over = threading.Event()
        self.lock = threading.RLock()
        self.thread = threading.Thread(target=self._keep, daemon=True)
        self.thread.start()

    def show_line(self) -> None:
        """Show the line from now on, if the stream can."""
        if self.live is not None and not self.lines:
            self.lines = True
            self.live.start()
            # A process that is killed has no time to give the cursor back.
            self.console.show_cursor(True)

    def say(self, text: str) -> None:
        """Write a text above the line."""
        with self.lock:
            if self.live is None:
                print(text, file=self.stream, flush=True)
            else:
                self.console.print(Text.from_ansi(text), soft_wrap=True)

    def begin(self, job: int, logs: list[str]) -> None:
        """Show from now on what is written into the logs of a job: it empties them first."""
        with self.lock:
            self.logs[job] = list(logs)
            self.shown |= dict.fromkeys(logs, 0)

    def end(self, job: int) -> None:
        """Show what is left of the logs of a job that has ended."""
        with self.lock:
            logs = self.logs.pop(job, [])
            self._tail(logs, whole=True)
            for log in logs:
                self.shown.pop(log, None)
        self._refresh()

    def stop(self) -> None:
        """Show what is left, and take the line away."""
        self.over.set()
        self.thread.join()
        for job in list(self.logs):
            self.end(job)
        if self.lines:
            self.live.stop()

    def _keep(self) -> None:
        while not self.over.wait(INTERVAL_S):
            with self.lock:
                self._tail(list(self.shown), whole=False)
            self._refresh()

    def _refresh(self) -> None:
        if self.lines:
            self.live.refresh()

    def _tail(self, logs: list[str], whole: bool) -> None:
        """Show what is new in logs; without `whole`, up to the last end of a line."""
        for log in logs:
            new = _after(Path(log), self.shown.get(log, 0))
            if not whole:
                new = new[: new.rfind(b"\n") + 1]
            if new:
                self.shown[log] = self.shown.get(log, 0) + len(new)
                self.say(new.decode(errors="replace").rstrip("\n"))


def _after(file: Path, start: int) -> bytes:
    try:
        with file.open("rb") as log:
            log.seek(start)
            return log.read()
    except FileNotFoundError:
        return b""


def status(run: Run) -> Text:
    """Return the line: done of chosen, failed, elapsed, left; then what runs now.

    What does not fit is cut off at the end, where the names of variants are.
    """
    now, (done, total) = run.standing, run.steps
    line = Text(no_wrap=True, overflow="ellipsis")
    if now.total:
        line.append(f"{now.done} of {now.total} trials", "bold")
    if now.ended and total:
        line.append(f"{', ' if now.total else ''}step {min(done + 1, total)} of {total}", "bold")
    if now.failed:
        line.append(", ").append(f"{now.failed} failed", "bold red")
    line.append(f", {clock(run.elapsed_s)}")
    if not now.ended:
        line.append(f", {progress.wait(run.wait_s())}")
    jobs = list(run.running.values())
    if jobs:
        more = f" and {len(jobs) - 1} more" if len(jobs) > 1 else ""
        line.append(" │ ", "dim").append(f"{clock(run.clock() - jobs[0].began_s)} {jobs[0].name}")
        line.append(more)
    return line
