"""Trials that hold nothing but that their server could not be built.

Once it is built, they are due again.
"""

import json
import shutil
from pathlib import Path

from deathmatch.errors import UserError
from deathmatch.plan import files
from deathmatch.plan.paths import ROOT

NOT_BUILT = "not built"


def not_built(server: str, root: Path = ROOT) -> list[Path]:
    """Return the folders of the server's trials with that outcome, but those of frozen datasets."""
    measured = [
        folder
        for name in files.names("dataset", root)
        if not _frozen(name, root)
        for folder in sorted((root / "data" / name).glob(f"*/{server}/*/*"))
    ]
    return [folder for folder in measured if _outcome(folder / "trial.json") == NOT_BUILT]


def _frozen(dataset: str, root: Path) -> bool:
    # Its file may be broken meanwhile; then nothing of it is touched.
    try:
        return files.dataset(dataset, root).frozen
    except UserError:
        return True


def _outcome(record: Path) -> str | None:
    try:
        return json.loads(record.read_text()).get("outcome")
    except (OSError, ValueError):
        return None


def forget(server: str, root: Path = ROOT) -> list[Path]:
    """Remove the trials that are `not_built`, as the server is built now; return their folders."""
    folders = not_built(server, root)
    for folder in folders:
        shutil.rmtree(folder)
    return folders
