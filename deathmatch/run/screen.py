"""A run on a terminal: one line that stays at the bottom, and above it what the jobs write."""

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
    """Shows a run until it is stopped; the jobs write into their logs, not to the terminal."""

    def __init__(self, run: Run, stream: TextIO) -> None:
        """Take the run and the terminal to write to."""
        self.run = run
        self.console = Console(file=stream, highlight=False, markup=False, emoji=False)
        self.live = Live(
            get_renderable=lambda: status(run), console=self.console, auto_refresh=False,
            transient=True, redirect_stdout=False, redirect_stderr=False,
        )  # fmt: skip
        # How much of each log has been shown, in bytes.
        self.shown: dict[str, int] = {}
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._keep, daemon=True)
        self.lock = threading.Lock()

    def start(self) -> None:
        """Show the line from now on."""
        self.live.start()
        # One that is killed has no time to give the cursor back.
        self.console.show_cursor(True)
        self.thread.start()

    def say(self, text: str) -> None:
        """Write a text above the line."""
        self.console.print(Text.from_ansi(text), soft_wrap=True)

    def begin(self, logs: list[str]) -> None:
        """Show of these logs what is written from now on: a job that begins empties its log."""
        self.shown |= dict.fromkeys(logs, 0)

    def end(self, logs: list[str]) -> None:
        """Show what is left of the logs of a job that has ended."""
        with self.lock:
            self._tail(logs, whole=True)
        for log in logs:
            self.shown.pop(log, None)
        self.live.refresh()

    def stop(self) -> None:
        """Show what is left, and take the line away."""
        self.over.set()
        self.thread.join()
        self.end(list(self.shown))
        self.live.stop()

    def _keep(self) -> None:
        while not self.over.wait(INTERVAL_S):
            with self.lock:
                self._tail(list(self.shown), whole=False)
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
    told = Text(no_wrap=True, overflow="ellipsis")
    if now.total:
        told.append(f"{now.done} of {now.total} trials", "bold")
    if now.ended and total:
        told.append(f"{', ' if now.total else ''}step {min(done + 1, total)} of {total}", "bold")
    if now.failed:
        told.append(", ").append(f"{now.failed} failed", "bold red")
    told.append(f", {clock(run.elapsed_s)}")
    if not now.ended:
        told.append(f", {progress.wait(run.wait_s())}")
    jobs = list(run.running.values())
    if jobs:
        more = f" and {len(jobs) - 1} more" if len(jobs) > 1 else ""
        told.append(" │ ", "dim").append(f"{clock(run.clock() - jobs[0].began_s)} {jobs[0].name}")
        told.append(more)
    return told


def of(run: Run, stream: TextIO) -> Screen | None:
    """Return a screen for the run if the stream is a terminal that can show one."""
    screen = Screen(run, stream)
    return None if screen.console.is_dumb_terminal else screen
