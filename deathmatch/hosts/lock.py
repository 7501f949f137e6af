"""Lock a server's Python packages: `./shell deathmatch lock NAME [PACKAGE...]`, with network.

From the names in `requirements.in` of its folder, which those on the command line replace, it
writes the list with all that they need, each with its release and hashes, for `packages.pypi`.
"""

import argparse
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from deathmatch.errors import UserError
from deathmatch.plan import files
from deathmatch.plan.root import ROOT
from deathmatch.plan.typed import typed

HOME = ROOT / "build" / "lock"
UV = "uv==0.13.9"
# Debian 12's.
PYTHON = "3.11"
NAMES = "requirements.in"
LIST = "requirements.txt"


def uv() -> Path:
    """Return the program that locks, of its own environment in build/; UserError if it fails."""
    program = HOME / "bin" / "uv"
    if not (HOME / UV).exists():
        _run([sys.executable, "-m", "venv", "--clear", HOME], "no place for the locking tool")
        _run([HOME / "bin" / "pip", "install", "--quiet", UV], "the locking tool is not to be had")
        (HOME / UV).touch()
    return program


def compiled(words: list[str | Path], out: Path, folder: Path) -> None:
    """Write what `words`, input and options of `uv pip compile`, need to `out`, with hashes.

    Paths among the words are relative to `folder`. Neither an index nor a place of this machine
    gets into the list. Raises UserError with what uv said if there is no solution.
    """
    always = [
        "--quiet", "--upgrade", "--python-version", PYTHON, "--generate-hashes",
        "--no-emit-index-url", "--no-header", "--no-annotate",
    ]  # fmt: skip
    program = [uv(), "pip", "compile", *always, *words, "--output-file", out]
    _run(program, "these packages cannot be locked", folder)


def _run(words: list[str | Path], what: str, folder: Path = ROOT) -> None:
    done = subprocess.run(
        list(map(str, words)), cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().replace(f"{ROOT}/", "")
        raise UserError(f"{what}:\n{said}", remedy="mend what it says; it needs the network")


def main(given: argparse.Namespace) -> int:
    """Write `requirements.txt` of the server, and `requirements.in` if packages are given."""
    # Its server.toml need not be right yet: it may name the list that is to be written.
    folder = files.path_of("server", given.server).parent
    if not folder.is_dir() or given.server.startswith("_") or "/" in given.server:
        files.server(given.server)
    names = folder / NAMES
    if not given.packages and not names.is_file():
        raise UserError(
            "no packages are named",
            where=str(names.relative_to(ROOT)),
            remedy=f"name them: {typed(f'deathmatch lock {given.server} PACKAGE...')}",
        )
    out = folder / (_named(folder) or LIST)
    with tempfile.TemporaryDirectory() as place:
        # Neither file is touched if there is no solution.
        asked, locked = Path(place, NAMES), Path(place, LIST)
        asked.write_text("".join(f"{package}\n" for package in given.packages))
        compiled([asked if given.packages else names], locked, folder)
        out.write_bytes(locked.read_bytes())
        if given.packages:
            names.write_bytes(asked.read_bytes())
    print(f"{out.relative_to(ROOT)}: all that {names.relative_to(ROOT)} needs, with hashes")
    if not _named(folder):
        print(
            f'  servers/{given.server}/server.toml, under [packages], still needs: pypi = "{LIST}"'
        )
    return 0


def _named(folder: Path) -> str | None:
    """Return the list that `packages.pypi` of the folder's server.toml names, if it names one."""
    try:
        named = tomllib.loads((folder / "server.toml").read_text())["packages"]["pypi"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return named if isinstance(named, str) else None
