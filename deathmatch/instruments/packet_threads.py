"""The kernel's threads that handle a sandbox's packets, as seen from outside of the sandbox.

Only there are they visible: each is pinned to the CPUs of its side, and what it has run is read.
"""

import contextlib
import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from deathmatch.hosts import packets

LOOK_S = 0.02


@dataclass
class Threads:
    """The threads of the sandbox that runs meanwhile; a thread looks at them every LOOK_S.

    `cpus` are those of each side; `seen` has a side, when it was looked at, and what had run by
    then, in ns of the monotonic clock.
    """

    cpus: dict[str, list[int]]
    seen: list[tuple[str, int, int]] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)
    _known: dict[int, str | None] = field(default_factory=dict)

    def __enter__(self) -> "Threads":
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def between_ns(self, side: str, began_ns: int, ended_ns: int) -> int | None:
        """Return what a side's threads ran from one moment to another; None if it had none."""
        looks = [(at_ns, ran_ns) for name, at_ns, ran_ns in self.seen if name == side]
        before = [ran_ns for at_ns, ran_ns in looks if at_ns <= began_ns]
        until = [ran_ns for at_ns, ran_ns in looks if at_ns <= ended_ns]
        return until[-1] - before[-1] if before else None

    def _look(self) -> None:
        # This thread must not take CPU time from the server. The process's others, by which the
        # sandbox is started, stay where they are: it inherits their CPUs.
        os.sched_setaffinity(0, self.cpus["client"])
        while not self._ended.wait(LOOK_S):
            pids = {int(name) for name in os.listdir("/proc") if name.isdigit()}
            self._known = {pid: self._known.get(pid) or self._side(pid) for pid in pids}
            for pid, name in self._known.items():
                if name:
                    # A thread ends with its interface.
                    with contextlib.suppress(OSError):
                        ran_ns = int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
                        self.seen.append((name, time.monotonic_ns(), ran_ns))

    def _side(self, pid: int) -> str | None:
        try:
            side = packets.side(Path(f"/proc/{pid}/comm").read_text())
            if side:
                os.sched_setaffinity(pid, self.cpus[side])
            return side
        except OSError:
            return None
