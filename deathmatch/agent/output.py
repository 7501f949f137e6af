"""A program's output, kept within bounds without the program noticing.

The program writes into a file: a pipe could fill up, and the end of its reader is a signal. From
time to time the file is cut in its middle, which leaves its writer, who appends, where it was.
"""

import threading
import time
from dataclasses import dataclass
from pathlib import Path

LIMIT_BYTES = 10_000_000
# The parts of a file that a cut leaves: its beginning and its end.
HEAD_BYTES = 1_000_000
TAIL_BYTES = 65_536
_INTERVAL_S = 0.1


@dataclass
class Output:
    """The file of a program's output; `left_out_bytes` is about how much of it was cut out."""

    file: Path
    left_out_bytes: int = 0

    def check(self) -> None:
        """Cut the file if it is larger than LIMIT_BYTES; else costs one system call.

        What is printed between its last read and its cut is lost, and is not counted.
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
            log.write(f"\n[{self.note()}]\n".encode() + tail)

    def note(self) -> str:
        """Return the note for a file that was cut; empty if it was not."""
        if not self.left_out_bytes:
            return ""
        return (
            f"deathmatch: about {self.left_out_bytes / 1e6:,.0f} MB of what the server printed are "
            f"left out here: no more than {LIMIT_BYTES / 1e6:.0f} MB are kept"
        )


class Outputs:
    """A thread that looks after all of them, from the first on."""

    def __init__(self) -> None:
        self._of: dict[Path, Output] = {}
        self._changing = threading.Lock()
        self._thread = threading.Thread(target=self._loop, daemon=True)

    def watch(self, file: Path) -> None:
        """Keep a file within bounds from now on."""
        with self._changing:
            self._of.setdefault(file, Output(file))
            if not self._thread.is_alive():
                self._thread.start()

    def left_out_bytes(self, file: Path) -> int:
        """Return about how much was cut out of a file so far; 0 if it is not watched."""
        with self._changing:
            if file not in self._of:
                return 0
            # It may have grown much since the last look.
            self._of[file].check()
            return self._of[file].left_out_bytes

    def _loop(self) -> None:
        while True:
            time.sleep(_INTERVAL_S)
            with self._changing:
                for output in self._of.values():
                    output.check()
