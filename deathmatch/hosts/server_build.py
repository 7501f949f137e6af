"""Building one server, as its `server.toml` says.

`python -m deathmatch build NAME` builds it.
"""

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from deathmatch.errors import UserError
from deathmatch.hosts import debian, nix, sandbox, toolchain, unknown_tools
from deathmatch.plan import files, sources
from deathmatch.plan.root import ROOT
from deathmatch.plan.server import Server

LOG_TAIL_LINES = 20


def build_dir(name: str) -> Path:
    """Return the folder into which the server is built; its whole path, for commands to use."""
    return ROOT / "build" / "servers" / name


def build(server: Server) -> dict:
    """Build one server and return {"ok", "version", "log"}.

    `log` holds the last lines of a failed command. The build's output goes to `build.log`
    beside the result.
    """
    name = server.name
    out = build_dir(name)
    _leave_no_other_toolchain(out)
    folder = ROOT / "servers" / name
    (out / "build.log").unlink(missing_ok=True)
    if nix.chosen() and server.not_in_nix:
        return {"ok": False, "version": None, "log": server.not_in_nix}
    if toolchain.name() == "debian":
        installed = debian.install(server.packages.debian, out / "build.log")
    else:
        installed = not nix.chosen() or nix.build(name, package(name), out / "build.log")
    if not installed:
        return {"ok": False, "version": None, "log": tail(out / "build.log")}
    with (out / "build.log").open("a") as log:
        for command in _build_commands(server):
            log.write(f"$ {command}\n")
            log.flush()
            status = subprocess.run(
                ["sh", "-ec", command], cwd=folder, env=environment(name),
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            ).returncode  # fmt: skip
            if status != 0:
                return {"ok": False, "version": None, "log": tail(out / "build.log")}
    if foreign := _foreign_tools(server):
        return {"ok": False, "version": None, "log": foreign}
    version = subprocess.run(
        ["sh", "-c", _fill(server.version, name, {})], cwd=folder, env=environment(name),
        capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    lines = (version.stdout + version.stderr).strip().splitlines()
    if version.returncode != 0 or not lines:
        shown = "\n".join(lines) or "it printed nothing"
        return {"ok": False, "version": None, "log": f"$ {server.version}\n{shown}"}
    return {"ok": True, "version": lines[0], "log": ""}


def _leave_no_other_toolchain(out: Path) -> None:
    """Make the build folder; empty one that another toolchain filled: its programs come first."""
    stamp = out / "toolchain"
    if out.exists() and (not stamp.exists() or stamp.read_text() != toolchain.name()):
        shutil.rmtree(out)
    out.mkdir(parents=True, exist_ok=True)
    stamp.write_text(toolchain.name())


def _foreign_tools(server: Server) -> str:
    """Return which of the server's tools Nix did not bring; empty where all are its own.

    A program of the system under a Nix shell would be measured under Nix's name. Without Nix, which
    of its tools are unknown.
    """
    if not nix.chosen():
        return unknown_tools.told(server, environment(server.name)["PATH"])
    name = server.name
    path = environment(name)["PATH"]
    found = {tool: shutil.which(tool, path=path) for tool in server.packages.tools}
    own = (toolchain.STORE, build_dir(name))
    return "\n".join(
        f"{tool}, which packages.tools of servers/{name}/server.toml names, is {where or 'missing'}"
        f" and not of Nix: name its package in packages.nix there, or in nix/servers/{name}.nix"
        for tool, where in found.items()
        if not where or not any(Path(where).resolve().is_relative_to(place) for place in own)
    )


def _build_commands(server: Server) -> list[str]:
    commands = []
    # Nix gives the server's Python packages itself.
    if server.packages.pypi and not nix.chosen():
        venv = shlex.quote(str(build_dir(server.name) / "venv"))
        lock = shlex.quote(server.packages.pypi)
        commands += [
            f"/usr/bin/python3 -m venv --clear {venv}",
            f"{venv}/bin/pip install --quiet --require-hashes -r {lock}",
        ]
    if server.build:
        commands.append(_fill(server.build, server.name, {}))
    return commands


def package(name: str) -> Path:
    """Return `nix.package`; raise UserError where the shell brings servers, but not this one."""
    found = nix.package(name)
    if "DEATHMATCH_SERVERS" in os.environ and not found.exists():
        raise UserError(
            f"this Nix shell holds no package of the server {name!r}",
            where=f"servers/{name}/server.toml, key packages.nix",
            remedy="leave it and enter `nix develop`, which builds a server when it is needed",
        )
    return found


def environment(name: str) -> dict[str, str]:
    """Return the environment of a server's commands.

    PATH begins with what the server's own build made, then come the programs of its Nix package,
    or else those of its virtual environment. Then comes the caller's PATH under Nix, else only
    that of Debian's packages: a compiler that someone put into /usr/local or into their home is
    not the one that the study names.
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


def _fill(command: str, name: str, values: dict) -> str:
    try:
        return command.format(build=build_dir(name), folder=ROOT / "servers" / name, **values)
    except (KeyError, IndexError, ValueError) as error:
        known = ", ".join(f"{{{key}}}" for key in ["build", "folder", *values])
        path = files.path_of("server", name)
        raise UserError(
            f"cannot fill the placeholders of `{command}`: {error}",
            where=str(path.relative_to(ROOT)),
            remedy=f"placeholders here: {known}; a literal brace is written twice",
        ) from None


def words(server: Server, values: dict) -> list[str]:
    """Return the server's start command as words, its placeholders filled."""
    return shlex.split(_fill(server.run, server.name, values))


def tail(log: Path, lines: int = LOG_TAIL_LINES) -> str:
    """Return the last lines of a log, what is not UTF-8 replaced, paths from the project's root."""
    text = log.read_text(errors="replace").replace(f"{ROOT}/", "")
    return "\n".join(text.splitlines()[-lines:])


def write_build(server: Server) -> dict:
    """Build the server, record the result in `build.json` of its build folder, return it."""
    fingerprint = sources.fingerprint(server)
    result = build(server) | {"server_sha256": fingerprint, "tools": tools(server)}
    partial = build_dir(server.name) / "build.json.new"
    partial.write_text(json.dumps(result, indent=2) + "\n")
    partial.rename(partial.with_name("build.json"))
    return result


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command line takes."""
    parser.add_argument("server", help="a folder in servers/")


def main(given: argparse.Namespace) -> int:
    """Build the server named on the command line; a failed build is a result too."""
    server = files.server(given.server)
    sandbox.die_with_owner()
    print(f"[build] {server.name}", file=sys.stderr)
    result = write_build(server)
    if not result["ok"]:
        print(f"[build] {server.name} failed; its last lines:\n{result['log']}", file=sys.stderr)
    return 0


def built(server: Server) -> dict:
    """Return what `write_build` recorded, building first if that is of other sources or tools."""
    record = build_dir(server.name) / "build.json"
    if record.exists():
        result = json.loads(record.read_text())
        if (result.get("server_sha256"), result.get("tools")) == (
            sources.fingerprint(server),
            tools(server),
        ):
            return result
    print(f"[build] {server.name}", file=sys.stderr)
    return write_build(server)


def tools(server: Server) -> dict[str, str]:
    """Return {tool: identity} of the server's programs and packages, without those missing."""
    name = server.name
    path = environment(name)["PATH"]
    programs = {tool: shutil.which(tool, path=path) for tool in server.packages.tools}
    found = {"toolchain": toolchain.name()}
    if nix.chosen():
        # Not there before the first build.
        programs["package"] = package(name) if package(name).exists() else None
    else:
        found |= toolchain.versions(server.packages.debian)
    return found | toolchain.identify({tool: file for tool, file in programs.items() if file})


def on_this_machine(servers: Iterable[Server]) -> list[tuple[str, dict]]:
    """Return for each server what a trial would record now, as `toolchain.check` takes it.

    What is not built yet has no tools of its own to tell.
    """
    return [
        (
            "this machine now",
            {
                "server": server.name,
                "tools": {
                    "harness": toolchain.harness(),
                    "server": tools(server) if _has_build(server) else {},
                },
            },
        )
        for server in servers
    ]


def _has_build(server: Server) -> bool:
    return (build_dir(server.name) / "build.json").exists()
