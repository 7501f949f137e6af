"""The tools that measure, each identified by the package or store path that it comes from.

Every `trial.json` records them; `tool_differences` compares them.
"""

import hashlib
import json
import os
import platform
import sys
from collections.abc import Iterable
from pathlib import Path

from deathmatch.builds import clients, debian, nix
from deathmatch.load import registry
from deathmatch.plan import files
from deathmatch.plan.paths import ROOT, folder

# They pin Nix's tools.
FLAKE = ["flake.nix", "flake.lock"]
RECIPES = ROOT / "nix"
STORE = Path(os.environ.get("NIX_STORE_DIR", "/nix/store"))
DIGITS = 16  # of a SHA-256, enough to distinguish two files


def name() -> str:
    """Return where the tools come from: "debian", "nix" or "nix-era-…", else "unknown"."""
    return os.environ.get("DEATHMATCH_TOOLCHAIN", "unknown")


def recipes(server: str) -> list[str]:
    """Return the files that a server's Nix package is made from, relative to the root, sorted.

    The server's folder is left out. Empty with another toolchain.
    """
    if not nix.chosen():
        return []
    paths = [*RECIPES.glob("*.nix"), RECIPES / "servers" / f"{server}.nix"]
    return FLAKE + sorted(str(path.relative_to(ROOT)) for path in paths if path.is_file())


def harness() -> dict[str, str]:
    """Return {tool: identity} of the tools of every trial: kernel, load generators, Python."""
    programs = {client: program for client in registry.CLIENTS if (program := clients.find(client))}
    # In Nix's store, the path identifies a program.
    own = {} if nix.chosen() else programs
    built = {client for client, program in own.items() if program == clients.built_at(client)}
    others = {tool: program for tool, program in programs.items() if tool not in built}
    tools = {
        "toolchain": name(),
        "kernel": platform.release(),
        **identify(others | {"python": sys.executable}),
        **{client: _built_identity(client) for client in built},
        "snakemake": os.environ.get("DEATHMATCH_SNAKEMAKE", ""),
    }
    if nix.chosen():
        tools["flake.lock"] = _digest(ROOT / file for file in FLAKE)
    return tools


def identify(programs: dict[str, str | Path]) -> dict[str, str]:
    """Return the identity of each program: "package version" on Debian, its store path in Nix.

    A program that was built here is identified by its sources, any other by its SHA-256.
    """
    files = {tool: Path(path).resolve() for tool, path in programs.items()}
    owners = debian.owners({path for path in files.values() if not path.is_relative_to(STORE)})
    return {tool: _identity(path, owners) for tool, path in files.items()}


def _identity(path: Path, owners: dict[Path, str]) -> str:
    if path.is_relative_to(STORE):
        return str(STORE / path.relative_to(STORE).parts[0])
    if path.is_relative_to(ROOT / "build"):
        made = path.relative_to(ROOT / "build").parts
        if made[0] == "servers":
            return f"built from {folder(made[1])}"
        source = ROOT / "clients" / made[0]
        if source.is_dir():
            files = sorted(path for path in source.rglob("*") if path.is_file())
            return f"built from clients/{made[0]}, {_digest(files)}"
    return owners.get(path) or f"no package, {_digest([path])}"


def _built_identity(client: str) -> str:
    """Return the sources and the version of a client that the build of a server makes."""
    server = registry.client(client).built_by
    sources = [ROOT / source for source in files.server(server).sources]
    paths = [path for source in sources for path in (source, *source.rglob("*")) if path.is_file()]
    record = ROOT / "build" / "servers" / server / "build.json"
    version = json.loads(record.read_text())["version"] if record.is_file() else None
    return (
        f"built from clients/{client}, {_digest(sorted(paths))}, as {version or 'it says itself'}"
    )


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return f"sha256 {digest.hexdigest()[:DIGITS]}"
