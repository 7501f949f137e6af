"""Lock what a server takes from registries: `./shell deathmatch lock NAME [PACKAGE...]`.

With network. It writes the list of a registry with all packages that are needed, their releases and
hashes, and the file of names that the list is made from: `lockers`.
"""

import argparse
import tomllib
from pathlib import Path

from deathmatch.builds import lockers
from deathmatch.plan import files
from deathmatch.plan.registries import LISTS, PYTHON_2
from deathmatch.plan.root import ROOT


def main(given: argparse.Namespace) -> int:
    """Write the list of the registry that is chosen, and the names that it is made from."""
    # Its server.toml need not be right yet: it may name the list that is to be written.
    folder = files.path_of("server", given.server).parent
    if not folder.is_dir() or given.server.startswith("_") or "/" in given.server:
        files.server(given.server)
    packages = _packages(folder)
    named = [key for key in LISTS if key in packages]
    registry = given.of or (named[0] if len(named) == 1 else "pypi")
    lock, names = lockers.write(
        registry, folder, given.packages, packages.get(registry), given.python
    )
    print(f"{lock.relative_to(ROOT)}: all that {names.relative_to(ROOT)} needs, with hashes")
    # Python 2's list is read by the server's own build command.
    if packages.get(registry) != lock.name and given.python != PYTHON_2:
        print(
            f"  servers/{given.server}/server.toml, under [packages], still needs: "
            f'{registry} = "{lock.name}"'
        )
    return 0


def _packages(folder: Path) -> dict:
    """Return what the folder's server.toml says under [packages]; nothing of a broken one."""
    try:
        packages = tomllib.loads((folder / "server.toml").read_text())["packages"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return packages if isinstance(packages, dict) else {}
