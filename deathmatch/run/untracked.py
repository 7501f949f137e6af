"""What a dataset's measurement makes stays out of git until its owner decides otherwise."""

from pathlib import Path

FOLDERS = ("data", "figures", "paper")


def make_folders(dataset: str, root: Path = Path()) -> None:
    """Make the dataset's folders in `root`; each new one ignores itself, by a .gitignore of `*`.

    An existing folder stays as it is: its .gitignore is removed to commit the dataset.
    """
    for name in FOLDERS:
        folder = root / name / dataset
        if not folder.exists():
            folder.mkdir(parents=True)
            (folder / ".gitignore").write_text("*\n")
