"""The end of a log, as a message to a user shows it."""

from pathlib import Path

from deathmatch.plan.root import ROOT

TAIL_BYTES = 20_000
TAIL_LINES = 20


def tail(log: Path, lines: int = TAIL_LINES) -> str:
    """Return the last lines of a log, what is not UTF-8 replaced, paths from the project's root."""
    with log.open("rb") as file:
        # A line may be as long as the log.
        file.seek(max(0, log.stat().st_size - TAIL_BYTES))
        text = file.read().decode(errors="replace").replace(f"{ROOT}/", "")
    return "\n".join(text.splitlines()[-lines:])
