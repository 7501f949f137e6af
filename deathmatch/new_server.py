"""Start a server's folder from the template: `python -m deathmatch.new_server NAME`."""

import re
import shutil
import sys

from deathmatch import config
from deathmatch.errors import UserError, run_main


def main() -> int:
    """Make `servers/NAME/`, which is measured as it stands; UserError if it cannot be made."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    where = "snakemake new_server --config name=NAME"
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", name):
        raise UserError(
            f"{name!r} is no name for a server" if name else "the server has no name yet",
            where,
            "use lower-case letters, digits, hyphens and points",
        )
    folder = config.path_of("server", name).parent
    if folder.exists():
        raise UserError(f"servers/{name} exists", where, "choose another name, or edit that one")
    shutil.copytree(config.ROOT / "config" / "template", folder)
    toml = folder / "server.toml"
    toml.write_text(toml.read_text().replace("NAME", name))
    print(
        f"servers/{name}/ is there, with a small Python server in it: put yours in its place.\n"
        f"  snakemake --config servers={name}     measures it\n"
        "  servers/README.md                     explains every key of server.toml"
    )
    return 0


if __name__ == "__main__":
    run_main(main)
