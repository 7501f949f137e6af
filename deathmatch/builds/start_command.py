"""Mistakes in a server's start command that its build can already see."""

import re
import shlex
import shutil
from pathlib import Path

from deathmatch.builds.server_commands import build_dir, environment
from deathmatch.plan.root import ROOT
from deathmatch.plan.server import Server
from deathmatch.plan.typed import typed

# What Python and Node print where a package is missing, with the registry that has it.
_MISSING_PACKAGE = {
    "pypi": re.compile(r"No module named '?([\w-]+)"),
    "npm": re.compile(r"Cannot find (?:module|package) '([^'./][^']*)'"),
}


def wrong(server: Server) -> str:
    """Return what keeps the start command of a built server from running; empty if nothing seen.

    Its program must be there, and its scripts have Unix line ends. A program whose name depends on
    a factor is not checked.
    """
    places = {"build": build_dir(server.name), "folder": ROOT / "servers" / server.name}
    words = shlex.split(server.run)
    for key, path in places.items():
        words = [word.replace(f"{{{key}}}", str(path)) for word in words]
    program, path = words[0], environment(server.name)["PATH"]
    # A name with a slash is looked up in the folder where the command runs.
    wanted = build_dir(server.name) / program if "/" in program else program
    if "{" not in program and not shutil.which(wanted, path=path):
        shown = program.replace(f"{ROOT}/", "")
        return (
            f"{shown!r}, with which the start command begins, is not there or not executable after "
            "the build: let `build` write it into {build}/bin, or name the Debian and Nix packages "
            "that bring it under [packages]"
        )
    for word in words:
        if word.startswith(str(places["folder"])) and Path(word).is_file():
            first = Path(word).read_bytes().partition(b"\n")[0]
            script = first.startswith(b"#!") or word.endswith(".sh")
            if script and first.endswith(b"\r"):
                shown = word.replace(f"{ROOT}/", "")
                return f"{shown} has Windows line ends: sed -i 's/\\r$//' {shown}"
    return ""


def lock_remedy(server: Server, output: str) -> str:
    """Return how to lock the package that a program's output misses, on a line of its own."""
    for key, pattern in _MISSING_PACKAGE.items():
        missing = pattern.search(output)
        if missing and not getattr(server.packages, key):
            option = "" if key == "pypi" else f" --of {key}"
            command = typed(f"deathmatch lock {server.name} {missing[1]}{option}")
            return f"\nif {missing[1]} is a package, lock it: {command}"
    return ""
