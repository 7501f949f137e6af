"""A server's commands: their folder, their environment, and their placeholders."""

import os
import shlex
import shutil
from pathlib import Path

from deathmatch.builds import debian, nix, toolchain
from deathmatch.errors import UserError
from deathmatch.plan import paths
from deathmatch.plan.paths import ROOT
from deathmatch.plan.server import Server


def build_dir(name: str) -> Path:
    """Return the folder into which the server is built, an absolute path for commands."""
    return ROOT / "build" / "servers" / name


def package(name: str) -> Path:
    """Return `nix.package`; raise UserError if the shell has servers, but not this one."""
    package = nix.package(name)
    if "DEATHMATCH_SERVERS" in os.environ and not package.exists():
        raise UserError(
            f"this Nix shell has no package of the server {name!r}",
            where=f"{paths.folder(name)}/server.toml, key packages.nix",
            remedy="leave it and enter `nix develop`, which builds a server when it is needed",
        )
    return package


def environment(name: str) -> dict[str, str]:
    """Return the environment of a server's commands.

    PATH has the programs of the server's build; then those of its Nix package, or else of its
    virtual environment; then the caller's PATH under Nix, else only the folders of Debian's
    packages: a compiler in /usr/local or in a home is not the one that the records name.
    """
    nixed = nix.chosen()
    first = package(name) / "bin" if nixed else build_dir(name) / "venv" / "bin"
    rest = os.environ["PATH"] if nixed else "/usr/sbin:/usr/bin:/sbin:/bin"
    return {
        "HOME": str(build_dir(name)),
        "LANG": "C.UTF-8",
        "PATH": f"{build_dir(name) / 'bin'}:{first}:{rest}",
        "DEATHMATCH_TOOLCHAIN": toolchain.name(),
    } | {key: value for key, value in os.environ.items() if key.startswith("PIP_")}


def fill(command: str, server: Server, values: dict) -> str:
    """Return the command with its placeholders filled; each path or level is quoted as one word.

    The placeholders of a configuration are inserted unquoted, and may be several words.
    """
    places = {"build": build_dir(server.name), "folder": server.folder, "system": server.system}
    own = server.configurations.get(str(values.get("configuration")))
    as_written = own.placeholders if own else {}
    words = {
        key: value if key in as_written else shlex.quote(str(value))
        for key, value in {**places, **values}.items()
    }
    try:
        return command.format(**words)
    except (KeyError, IndexError, ValueError) as error:
        known = ", ".join(f"{{{key}}}" for key in [*places, *values])
        raise UserError(
            f"cannot fill the placeholders of `{command}`: {error}",
            where=f"{paths.folder(server.name)}/server.toml",
            remedy=f"use these placeholders: {known}; write a literal brace twice",
        ) from None


def words(server: Server, values: dict) -> list[str]:
    """Return the server's start command as words, its placeholders filled."""
    return shlex.split(fill(server.run, server, values))


def tools(server: Server) -> dict[str, str]:
    """Return {tool: identity} of the server's programs and packages, without missing ones."""
    name = server.name
    path = environment(name)["PATH"]
    programs = {tool: shutil.which(tool, path=path) for tool in server.packages.tools}
    identities = {"toolchain": toolchain.name()}
    if nix.chosen():
        # There is none before the first build.
        programs["package"] = package(name) if package(name).exists() else None
    else:
        identities |= debian.versions(server.packages.debian)
    return identities | toolchain.identify({tool: file for tool, file in programs.items() if file})
