"""What a server takes from package registries, each by a hash-locked list in its own folder.

`[packages]` of server.toml names the lists; this is the order in which they are installed into the
server's build folder, before its own `build` command runs there.
"""

import shlex
from pathlib import Path

from deathmatch.builds import pypi
from deathmatch.plan.root import ROOT
from deathmatch.plan.server import Server


def commands(server: Server, build: Path, nixed: bool) -> list[str]:
    """Return the shell commands, for the server's folder, that install what it names.

    `nixed`: Nix gives Python's packages itself, and those of npm unless `npm` is among the tools.
    """
    asked = server.packages
    folder = ROOT / "servers" / server.name
    made = []
    if asked.pypi and not nixed:
        made += pypi.commands(folder / asked.pypi, build / "venv")
    if asked.npm and (not nixed or "npm" in asked.tools):
        made.append(_npm(build, asked.npm))
    if asked.cargo:
        made.append(_cargo(build))
    if asked.go:
        made.append(_go(build))
    if asked.maven:
        made.append(_maven(folder, build))
    return made


def _npm(build: Path, lock: str) -> str:
    """Return the command that puts what `package-lock.json` lists into {build}/node_modules."""
    return (
        f"cp package.json {shlex.quote(lock)} {_quoted(build)}/ && cd {_quoted(build)}"
        # Trust what the system trusts, as pip does here.
        " && NODE_USE_SYSTEM_CA=1"
        " npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier"
    )


def _cargo(build: Path) -> str:
    """Return the command that puts the programs of the folder's crate into {build}/bin."""
    return (
        "cargo install --quiet --locked --force --no-track --path ."
        f" --root {_quoted(build)} --target-dir {_quoted(build / 'target')}"
    )


def _go(build: Path) -> str:
    """Return the command that puts the program of the folder's module into {build}/bin."""
    return (
        f"GOBIN={_quoted(build / 'bin')} CGO_ENABLED=0 GOTOOLCHAIN=local"
        " GOFLAGS='-mod=readonly -buildvcs=false' go install ."
    )


def _maven(folder: Path, build: Path) -> str:
    """Return the command that puts the jars that `pom.xml` needs into {build}/jars."""
    return f"{_quoted(ROOT)}/toolchains/maven/fetch {_quoted(folder)} {_quoted(build)}"


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
