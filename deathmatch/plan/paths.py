"""Where everything of the project lies that has a name, the names that exist, its own version."""

import re
from functools import cache
from pathlib import Path

from deathmatch.errors import UserError

ROOT = Path(__file__).resolve().parent.parent.parent
# What the project is: its version, authors and licence.
CITATION = "CITATION.cff"

PLACES = {
    "server": "servers/{}/server.toml",
    "experiment": "experiments/{}.toml",
    "dataset": "config/datasets/{}.toml",
    "testbed": "config/testbeds/{}.toml",
    "notebook": "notebooks/{}.md",
    "template": "servers/_template/{}/server.toml",
}
# Names become paths, targets of Snakemake and words of commands.
NAMES = dict.fromkeys(PLACES, r"[A-Za-z0-9][\w.-]*") | {"experiment": r"[A-Za-z0-9][\w-]*"}
ALLOWED = dict.fromkeys(PLACES, "letters, digits, '.', '_' and '-'") | {
    "experiment": "letters, digits, '_' and '-'"
}
# A name with what is added to it, such as `.toml`, is to be the name of a file.
LONGEST = 200


def usable(kind: str, name: str) -> bool:
    """Return whether something of that kind may have the name: it leads nowhere else."""
    return bool(re.fullmatch(NAMES[kind], name, re.ASCII)) and len(name) <= LONGEST


def check_dataset(name: str, where: str) -> None:
    """Raise UserError if a dataset cannot have the name: folders are made and read by it."""
    if not usable("dataset", name):
        what = f"{name[:LONGEST]!r} cannot be the name of a dataset"
        raise UserError(what, where, "give the name of a folder in data/")


def path_of(kind: str, name: str, root: Path = ROOT) -> Path:
    """Return the file that defines the `kind` called `name`, whether or not it exists."""
    return root / PLACES[kind].format(name)


def names(kind: str, root: Path = ROOT) -> list[str]:
    """Return the sorted names of everything of that kind in the tree.

    Raises UserError for a file or folder whose name cannot be used.
    """
    pattern = path_of(kind, "[!_.]*", root).relative_to(root)
    in_folder = pattern.name == "server.toml"
    known = sorted(p.parent.name if in_folder else p.stem for p in root.glob(str(pattern)))
    for name in known:
        if not usable(kind, name):
            path = path_of(kind, name, root).relative_to(root)
            where = path.parent if in_folder else path
            what = f"{name!r} cannot be the name of a {kind}"
            raise UserError(
                what, str(where), f"rename it: {ALLOWED[kind]}, a letter or digit first"
            )
    return known


@cache
def project() -> dict:
    """Return the fields of the project's CITATION.cff (Citation File Format 1.2.0)."""
    # Names alone, for help, need no library.
    import yaml

    return yaml.safe_load((ROOT / CITATION).read_text())


def version() -> str:
    """Return the project's version, as year.month.number; commits after it have the same."""
    return project()["version"]
