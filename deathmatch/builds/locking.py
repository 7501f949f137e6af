"""Programs that lock lists of packages, and how they are run: in build/lock, with the network."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from deathmatch.errors import UserError
from deathmatch.plan.root import ROOT

HOME = ROOT / "build" / "lock"


def run(
    words: Sequence[str | Path], what: str, folder: Path = ROOT, env: dict[str, str] | None = None
) -> str:
    """Run a command in a folder and return what it printed; UserError with `what` if it fails."""
    done = subprocess.run(
        list(map(str, words)), cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True,
        text=True,
    )  # fmt: skip
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).replace(f"{ROOT}/", "")
        raise UserError(f"{what}:\n{said}", remedy="mend what it says; it needs the network")
    return done.stdout
