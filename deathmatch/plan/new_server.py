"""Start a server's folder from a template: `./shell deathmatch new-server NAME [--kind KIND]`."""

import argparse
import re
import shutil
import tomllib

from deathmatch.errors import UserError, as_typed, suggestions
from deathmatch.load import registry
from deathmatch.plan import files
from deathmatch.plan.paths import ROOT

TEMPLATES = ROOT / "servers" / "_template"
KINDS = {
    "one-request": "one request a connection",
    "keep-alive": "several requests a connection",
    "websocket": "WebSocket",
}
"""What a server may be like, each a folder of the templates."""


def main(given: argparse.Namespace) -> int:
    """Make `servers/NAME/`, which can be measured at once; UserError if it cannot be made."""
    name, kind = given.name, given.kind
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", name):
        what = f"{name!r} cannot be the name of a server"
        raise UserError(what, "new-server", "use lower-case letters, digits, hyphens and points")
    folder = files.path_of("server", name).parent
    if folder.exists():
        raise UserError(f"servers/{name} exists", "new-server", "choose another name")
    if kind not in KINDS:
        raise UserError(
            f"there is no kind {kind!r} of server", "new-server", suggestions(kind, KINDS)
        )
    shutil.copytree(TEMPLATES / kind, folder)
    toml = folder / "server.toml"
    toml.write_text(toml.read_text().replace("NAME", name))
    print(advice(name, kind))
    return 0


def experiments(kind: str) -> list[str]:
    """Return the experiments that the template of a kind serves."""
    return tomllib.loads((TEMPLATES / kind / "server.toml").read_text())["experiments"]


def advice(name: str, kind: str) -> str:
    """Return what was made and what to type next."""
    measure = f"snakemake --config dataset=smoke servers={name}"
    clients = [files.experiment(experiment).client for experiment in experiments(kind)]
    rated = any(client and registry.client(client).searches for client in clients)
    compare = [
        f"  {as_typed(f'deathmatch measure {name}')}",
        "      compares it with other servers in ten minutes, writes its card",
    ]
    lines = [
        f"servers/{name}/ is there, with a small Python server in it: put yours in its place.",
        f"  its kind is {kind}, {KINDS[kind]}; it serves {', '.join(experiments(kind))}",
        f"  other kinds: --kind, one of {', '.join(KINDS)}",
        f"  {as_typed(f'deathmatch build {name}')}",
        "      builds it and shows its version",
        f"  {as_typed(f'deathmatch check-server {name}')}",
        "      checks its answers, in seconds",
        *(compare if rated else []),
        f"  {as_typed(measure)}",
        "      measures it in all that it serves, writes the paper",
        "  servers/README.md explains every key and placeholder of server.toml",
    ]
    return "\n".join(lines)
