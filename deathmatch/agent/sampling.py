"""Sampling the kernel at an interval, on the host itself: no message crosses a link meanwhile."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from deathmatch.agent import kernel

# Where a load generator waits for the same CPU, it goes first.
_NICENESS = 10


class Sampler:
    """A thread that takes a sample now and every `interval_s`, until `end`.

    A sample is {"at_ns", "label", "counters", "machine", "usage"}: the instant of this host's
    monotonic clock; the label in force; the network's counters, all or those that `counters` names
    as [file, "group name"], missing ones None; `kernel.machine`, if `cpus` are given; the sum of
    `kernel.usage` over the processes that `pids()` returns at that moment.
    """

    def __init__(
        self, interval_s: float, pids: Callable[[], list[int]], cpus: Sequence[int] | None,
        counters: Sequence[Sequence[str]] | None, label: Any = None,
    ):  # fmt: skip
        self._interval_s, self._pids, self._cpus = interval_s, pids, cpus
        self._counters = counters
        self.label = label
        self._rows: list[dict] = []
        self._ended, self._taking = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._loop, daemon=True)
        self._thread.start()

    def _loop(self) -> None:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
        due = time.monotonic()
        while not self._ended.wait(max(0, due - time.monotonic())):
            self.take()
            # A late sample must not be followed by a burst.
            due = max(due + self._interval_s, time.monotonic())

    def take(self) -> None:
        """Take a sample now, from any thread."""
        with self._taking:
            self._rows.append(self._sample())

    def rows(self) -> list[dict]:
        """Return the samples since the last call, and forget them."""
        with self._taking:
            taken, self._rows = self._rows, []
        return taken

    def end(self) -> list[dict]:
        """Take no more; return what `rows` would."""
        self._ended.set()
        self._thread.join()
        return self.rows()

    def _sample(self) -> dict:
        row = {"at_ns": time.monotonic_ns(), "label": self.label}
        row["counters"] = read = kernel.counters()
        if self._counters is not None:
            row["counters"] = {file: {} for file, _ in self._counters}
            for file, name in self._counters:
                row["counters"][file][name] = read[file].get(name)
        if self._cpus is not None:
            row["machine"] = kernel.machine(self._cpus)
        used = [kernel.usage(pid) for pid in self._pids()]
        row["usage"] = {what: sum(one[what] for one in used) for what in kernel.USED}
        return row
