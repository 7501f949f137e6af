"""The places of everything that has a name, the names that exist, and the project's version."""

import fnmatch
import os
import re
import subprocess
from functools import cache
from itertools import pairwise
from pathlib import Path

from deathmatch.errors import UserError

ROOT = Path(__file__).resolve().parent.parent.parent
CITATION = "CITATION.cff"

PLACES = {
    "server": "servers/{}/server.toml",
    "experiment": "experiments/{}.toml",
    "dataset": "config/datasets/{}.toml",
    "testbed": "config/testbeds/{}.toml",
    "notebook": "notebooks/{}.md",
    "template": "servers/_template/{}/server.toml",
}
# Other releases of a system whose own folder is among PLACES.
RELEASES = "servers/releases/{}/server.toml"
# Names become paths, targets of Snakemake and words of commands.
_NAME = r"[A-Za-z0-9][\w.-]*"
NAMES = dict.fromkeys(PLACES, _NAME) | {"experiment": r"[A-Za-z0-9][\w-]*"}
ALLOWED = dict.fromkeys(PLACES, "letters, digits, '.', '_' and '-'") | {
    "experiment": "letters, digits, '_' and '-'"
}
# Left in folders by editors, file managers, version control and caches.
LITTER = ("*.sw[a-p]", "*~", ".#*", "#*#", ".DS_Store", "Thumbs.db", "__pycache__", "*.pyc",
          ".git", ".hg", ".svn", ".idea", ".vscode", ".cache", ".*_cache")  # fmt: skip
# A file's name has 255 bytes at most, with suffixes such as `.toml`.
LONGEST = 200


def usable(kind: str, name: str) -> bool:
    """Return whether the name is valid for that kind, so that its path leads nowhere else."""
    return bool(re.fullmatch(NAMES[kind], name, re.ASCII)) and len(name) <= LONGEST


def check_dataset(name: str, where: str) -> None:
    """Raise UserError if a dataset cannot have the name, which becomes the path of a folder."""
    if not usable("dataset", name):
        what = f"{name[:LONGEST]!r} cannot be the name of a dataset"
        raise UserError(what, where, "give the name of a folder in data/")


def path_of(kind: str, name: str, root: Path = ROOT) -> Path:
    """Return the file that defines the `kind` called `name`, whether or not it exists."""
    release = root / RELEASES.format(name)
    # is_file() raises OSError for a name that is too long.
    if kind == "server" and len(name) <= LONGEST and release.is_file():
        return release
    return root / PLACES[kind].format(name)


def split(path: Path) -> tuple[str, tuple[str, ...]]:
    """Return the dataset that a path below `data/` belongs to, and the rest of the path's parts."""
    parts = path.parts
    below = parts[len(parts) - parts[::-1].index("data") :] if "data" in parts else parts
    return "".join(below[:1]), below[1:]


def folder(server: str) -> str:
    """Return a server's folder, relative to the project's root."""
    return str(path_of("server", server).parent.relative_to(ROOT))


def names(kind: str, root: Path = ROOT) -> list[str]:
    """Return the sorted names of everything of that kind in the tree.

    Raises UserError for a file or folder whose name cannot be used, and for two servers of a name.
    """
    places = [PLACES[kind], *([RELEASES] if kind == "server" else [])]
    known = sorted(
        str(path.relative_to(root))[len(before) : -len(after)]
        for before, after in (place.split("{}") for place in places)
        for path in root.glob(f"{before}[!_.]*{after}")
    )
    if twice := next((name for name, after in pairwise(known) if name == after), None):
        what = f"servers/{twice} and servers/releases/{twice} have the same name"
        raise UserError(what, remedy="rename one of the two folders")
    in_folder = PLACES[kind].endswith("/server.toml")
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
    # The help lists names without waiting for this import.
    import yaml

    return yaml.safe_load((ROOT / CITATION).read_text())


def of_caller() -> Path:
    """Return the folder in which the user typed a command; ./shell changes to the project's."""
    return Path(os.environ.get("DEATHMATCH_FROM", "."))


def version() -> str:
    """Return the project's version, as year.month.number: that of the latest release."""
    return project()["version"]


def below(place: Path) -> list[Path]:
    """Return the files in a folder, recursively and sorted, or a file itself, without LITTER.

    Symbolic links are followed; a folder that several of them lead to is visited once.
    """
    found, seen = [place] if place.is_file() else [], set()
    for folder, folders, names in os.walk(place, followlinks=True):
        real = os.path.realpath(folder)
        again = real in seen
        seen.add(real)
        folders[:] = sorted(name for name in folders if not again and not _is_litter(name))
        files = (Path(folder, name) for name in names if not again and not _is_litter(name))
        found += [file for file in files if file.is_file()]
    return sorted(found)


def _is_litter(name: str) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in LITTER)


def git(root: Path, *words: str) -> str:
    """Return what git prints about the repository in `root`, an absolute path.

    The environment and a repository around `root` are ignored, as is the folder's owner, because
    code of that folder runs already. Raises FileNotFoundError without git, CalledProcessError if it
    fails.
    """
    # Variables such as GIT_DIR name another repository.
    environment = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_CEILING_DIRECTORIES": str(root.parent), "LC_ALL": "C"}
    command = ["git", "-c", f"safe.directory={root}", "-c", "core.fsmonitor=false", "-C", str(root)]
    done = subprocess.run(
        [*command, *words], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@cache
def ignored() -> tuple[str, ...]:
    """Return the paths that git ignores, from the project's root; a folder's ends with "/".

    None of them without git. The first call starts a process.
    """
    words = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"]
    try:
        return tuple(filter(None, git(ROOT, *words).split("\0")))
    except (FileNotFoundError, subprocess.CalledProcessError):
        return ()


def is_ignored(name: str) -> bool:
    """Return whether git ignores a file or its folder, given its path from the root."""
    return any(name == one or (one[-1] == "/" and name.startswith(one)) for one in ignored())
