"""What a dataset's measurement makes stays out of git until its owner decides otherwise."""

from collections.abc import Sequence
from pathlib import Path

FOLDERS = ("data", "figures", "paper")


def make_folders(dataset: str, root: Path = Path(), names: Sequence[str] = FOLDERS) -> None:
    """Make the dataset's folders in `root`; each new one ignores itself, by a .gitignore of `*`.

    `names` are those of FOLDERS to make it in; default: all. An existing folder stays as it is: its
    .gitignore is removed to commit the dataset.
    """
    for name in names:
        folder = root / name / dataset
        if not folder.exists():
            folder.mkdir(parents=True)
            (folder / ".gitignore").write_text("*\n")
