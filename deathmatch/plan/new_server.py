"""Start a server's folder from the template: `./shell deathmatch new-server NAME`."""

import argparse
import re
import shutil

from deathmatch.errors import UserError
from deathmatch.plan import files
from deathmatch.plan.root import ROOT


def main(given: argparse.Namespace) -> int:
    """Make `servers/NAME/`, which is measured as it stands; UserError if it cannot be made."""
    name = given.name
    where = "snakemake new_server --config name=NAME"
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", name):
        raise UserError(
            f"{name!r} is no name for a server" if name else "the server has no name yet",
            where,
            "use lower-case letters, digits, hyphens and points",
        )
    folder = files.path_of("server", name).parent
    if folder.exists():
        raise UserError(f"servers/{name} exists", where, "choose another name, or edit that one")
    shutil.copytree(ROOT / "servers" / "_template", folder)
    toml = folder / "server.toml"
    toml.write_text(toml.read_text().replace("NAME", name))
    print(
        f"servers/{name}/ is there, with a small Python server in it: put yours in its place.\n"
        f"  snakemake --config servers={name}     measures it\n"
        "  servers/README.md                     explains every key of server.toml"
    )
    return 0
