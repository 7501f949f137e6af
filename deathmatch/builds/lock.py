"""Lock what a server takes from registries: `./shell deathmatch lock NAME [PACKAGE...]`.

With network. Of Python's, from the names in `requirements.in` of its folder, which those on the
command line replace, it writes the list with all that they need, each with its release and hashes,
for `packages.pypi`. The lists of other registries are in `lock_others`.
"""

import argparse
import sys
import tempfile
import tomllib
from pathlib import Path

from deathmatch.builds import lock_others
from deathmatch.builds.locking import HOME, run
from deathmatch.errors import UserError
from deathmatch.plan import files
from deathmatch.plan.registries import LISTS
from deathmatch.plan.root import ROOT
from deathmatch.plan.typed import typed

UV = "uv==0.13.9"
# Debian 12's.
PYTHON = "3.11"
NAMES = "requirements.in"
LIST = "requirements.txt"


def uv() -> Path:
    """Return the program that locks, of its own environment in build/; UserError if it fails."""
    program = HOME / "bin" / "uv"
    if not (HOME / UV).exists():
        run([sys.executable, "-m", "venv", "--clear", HOME], "no place for the locking tool")
        run([HOME / "bin" / "pip", "install", "--quiet", UV], "the locking tool is not to be had")
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
    run(program, "these packages cannot be locked", folder)


def main(given: argparse.Namespace) -> int:
    """Write the list of the registry that is chosen, and the names that it is made from."""
    # Its server.toml need not be right yet: it may name the list that is to be written.
    folder = files.path_of("server", given.server).parent
    if not folder.is_dir() or given.server.startswith("_") or "/" in given.server:
        files.server(given.server)
    registry = given.of or _registry(folder)
    if registry == "pypi":
        out, made_of = _pypi(folder, given.packages)
    else:
        out, made_of = lock_others.write(registry, folder, given.packages)
    print(f"{out.relative_to(ROOT)}: all that {made_of.relative_to(ROOT)} needs, with hashes")
    if _packages(folder).get(registry) != out.name:
        print(
            f"  servers/{given.server}/server.toml, under [packages], still needs: "
            f'{registry} = "{out.name}"'
        )
    return 0


def _pypi(folder: Path, packages: list[str]) -> tuple[Path, Path]:
    """Write the list of Python packages; return it and the file of names that it is made from."""
    names = folder / NAMES
    if not packages and not names.is_file():
        raise UserError(
            "no packages are named",
            where=str(names.relative_to(ROOT)),
            remedy=f"name them: {typed(f'deathmatch lock {folder.name} PACKAGE...')}",
        )
    named = _packages(folder).get("pypi")
    out = folder / (named if isinstance(named, str) else LIST)
    with tempfile.TemporaryDirectory() as place:
        # Neither file is touched if there is no solution.
        asked, locked = Path(place, NAMES), Path(place, LIST)
        asked.write_text("".join(f"{package}\n" for package in packages))
        compiled([asked if packages else names], locked, folder)
        out.write_bytes(locked.read_bytes())
        if packages:
            names.write_bytes(asked.read_bytes())
    return out, names


def _registry(folder: Path) -> str:
    """Return the only registry of which server.toml names a list; Python's, if it is not one."""
    named = [key for key in LISTS if key in _packages(folder)]
    return named[0] if len(named) == 1 else "pypi"


def _packages(folder: Path) -> dict:
    """Return what the folder's server.toml says under [packages]; nothing of a broken one."""
    try:
        found = tomllib.loads((folder / "server.toml").read_text())["packages"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}
