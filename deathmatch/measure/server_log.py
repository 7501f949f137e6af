"""What a server prints, kept within bounds without the server noticing.

It writes into a file, as ever: no pipe that could fill up, no reader whose end is a signal. From
time to time the file is cut in its middle, which leaves its writer, who appends, where it was.
"""

from dataclasses import dataclass
from pathlib import Path

LIMIT_BYTES = 10_000_000
# Of a log that is cut: how it began, and what came last before the cut.
HEAD_BYTES = 1_000_000
TAIL_BYTES = 65_536


@dataclass
class ServerLog:
    """The file of a server's output; `left_out_bytes` is about how much of it was cut out."""

    file: Path
    left_out_bytes: int = 0

    def check(self) -> None:
        """Cut the file if it is larger than LIMIT_BYTES; else costs one system call.

        What is printed while it is cut may be lost, and is not counted.
        """
        size = self.file.stat().st_size if self.file.exists() else 0
        if size <= LIMIT_BYTES:
            return
        with self.file.open("r+b") as log:
            log.seek(size - TAIL_BYTES)
            tail = log.read(TAIL_BYTES).partition(b"\n")[2]
            log.truncate(HEAD_BYTES)
        self.left_out_bytes += size - HEAD_BYTES - len(tail)
        with self.file.open("ab") as log:
            log.write(f"\n[{self.note()}]\n".encode() + tail)

    def note(self) -> str:
        """Return what is to be said of a log that was cut; empty of one that was not."""
        if not self.left_out_bytes:
            return ""
        return (
            f"deathmatch: about {self.left_out_bytes / 1e6:,.0f} MB of what the server printed are "
            f"left out here: no more than {LIMIT_BYTES / 1e6:.0f} MB are kept"
        )

    def record(self) -> dict[str, int]:
        """Return what trial.json says of it."""
        return {"limit_bytes": LIMIT_BYTES, "left_out_bytes": self.left_out_bytes}
