"""Building one server, as its `server.toml` says.

`./shell deathmatch build NAME` builds it.
"""

import argparse
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from deathmatch.errors import UserError
from deathmatch.hosts import (
    build_aside,
    debian,
    locked,
    nix,
    node,
    sandbox,
    toolchain,
    unknown_tools,
    verdicts,
)
from deathmatch.plan import files, sources
from deathmatch.plan.root import ROOT
from deathmatch.plan.server import Server

LOG_TAIL_BYTES = 20_000
LOG_TAIL_LINES = 20
# Of a shell, and of a command in it: by the kernel for want of memory, or by somebody.
KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)

# In a server's build folder, beside what its commands make.
RECORD = "build.json"  # what came of the last attempt
GOOD = "built.json"  # what came of the one that made what is there
LOG = "build.log"
TOOLCHAIN = "toolchain"
ATTEMPT = "attempt.json"


def build_dir(name: str) -> Path:
    """Return the folder into which the server is built; its whole path, for commands to use."""
    return ROOT / "build" / "servers" / name


def _build(server: Server) -> dict:
    """Build one server and return {"ok", "version", "log"}.

    `log` holds the last lines of a failed command. The build's output goes to `build.log`
    beside the result.
    """
    name = server.name
    out = build_dir(name)
    if nix.chosen() and not nix.build(name, package(name), out / LOG):
        return _failed(tail(out / LOG))
    before = set(sources.files(server))
    with (out / LOG).open("a") as log:
        for command in _build_commands(server):
            log.write(f"$ {command}\n")
            log.flush()
            status = subprocess.run(
                ["sh", "-ec", command], cwd=ROOT / "servers" / name, env=environment(name),
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            ).returncode  # fmt: skip
            if status in KILLED:
                raise _killed(name, f"was killed (SIGKILL) at: {command}")
            if status != 0:
                return _failed(tail(out / LOG))
        if written := _written(before, server):
            return _failed(written)
        result = _version(server)
        log.write(result["log"] or f"version: {result['version']}\n")
    return result


def _written(before: set[str], server: Server) -> str:
    """Return what to say of files that a build added to its own sources; empty if there are none.

    What a server is made from says which of its trials are valid: it must not change by building.
    """
    # An editor's own files come and go.
    added = [
        name for name in sources.files(server)
        if name not in before and not Path(name).name.startswith(".")
    ]  # fmt: skip
    if not added:
        return ""
    return (
        f"the build wrote into the server's own folder: {', '.join(added)}\n"
        "let it write into {build}, for example by copying the sources there first, then remove "
        f"these files: rm {' '.join(added)}"
    )


def _version(server: Server) -> dict:
    """Return what `_build` does, of the version command of a server that is built."""
    if foreign := _foreign_tools(server):
        return _failed(foreign)
    version = subprocess.run(
        ["sh", "-c", _fill(server.version, server, {})], cwd=ROOT / "servers" / server.name,
        env=environment(server.name), capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if version.returncode in KILLED:
        raise _killed(server.name, f"was killed (SIGKILL) at: {server.version}")
    lines = (version.stdout + version.stderr).strip().splitlines()
    if version.returncode == 0 and lines:
        return {"ok": True, "version": lines[0], "log": ""}
    shown = "\n".join(lines) or "it printed nothing"
    ended = f" and ended with exit status {version.returncode}" if version.returncode else ""
    return _failed(f"$ {server.version}\n{shown}\nthe version command failed{ended}")


def _killed(name: str, what: str) -> UserError:
    """Return the error of a build that somebody ended: that tells nothing of the server."""
    return UserError(
        f"the build {what}",
        where=f"servers/{name}",
        remedy="run again, and it is built anew; if it is killed each time, `dmesg` tells whether "
        "memory ran out",
    )


def _failed(log: str) -> dict:
    return {"ok": False, "version": None, "log": log}


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
    commands = locked.commands(server, build_dir(server.name), nix.chosen())
    if server.build:
        commands.append(_fill(server.build, server, {}))
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


def _fill(command: str, server: Server, values: dict) -> str:
    """Return the command with its placeholders filled: paths and levels are each one word of it.

    What a configuration fills in is part of the command, and may be several words.
    """
    places = {"build": build_dir(server.name), "folder": ROOT / "servers" / server.name}
    own = server.configurations.get(str(values.get("configuration")))
    as_written = own.placeholders if own else {}
    words = {
        key: value if key in as_written else shlex.quote(str(value))
        for key, value in {**places, **values}.items()
    }
    try:
        return command.format(**words)
    except (KeyError, IndexError, ValueError) as error:
        known = ", ".join(f"{{{key}}}" for key in ["build", "folder", *values])
        path = files.path_of("server", server.name)
        raise UserError(
            f"cannot fill the placeholders of `{command}`: {error}",
            where=str(path.relative_to(ROOT)),
            remedy=f"placeholders here: {known}; a literal brace is written twice",
        ) from None


def words(server: Server, values: dict) -> list[str]:
    """Return the server's start command as words, its placeholders filled."""
    return shlex.split(_fill(server.run, server, values))


def tail(log: Path, lines: int = LOG_TAIL_LINES) -> str:
    """Return the last lines of a log, what is not UTF-8 replaced, paths from the project's root."""
    with log.open("rb") as file:
        # A line may be as long as the log.
        file.seek(max(0, log.stat().st_size - LOG_TAIL_BYTES))
        text = file.read().decode(errors="replace").replace(f"{ROOT}/", "")
    return "\n".join(text.splitlines()[-lines:])


def write_build(server: Server) -> dict:
    """Build the server and return the result: {"ok", "version", "log", "server_sha256", "tools"}.

    `build.json` of its build folder records it, and trials refer to that. A build that fails
    leaves the former one where it is; if that is of the same sources and tools, so does the record.
    """
    out = build_dir(server.name)
    # The sources may change while it builds.
    made_of = {"server_sha256": sources.fingerprint(server)}
    keep = _of_this_toolchain(out)
    with build_aside.folder(out, keep) as new:
        for file in (RECORD, GOOD, LOG):
            (new / file).unlink(missing_ok=True)
        (new / TOOLCHAIN).write_text(toolchain.name())
        result = {"tools": {}} | _attempt(server, new) | made_of
        if result["ok"]:
            _write(new / GOOD, result)
            _write(new / RECORD, result)
        if result["ok"] or not (keep and (out / GOOD).exists()):
            build_aside.swap(new, out)
        elif (new / LOG).exists():
            shutil.copy(new / LOG, out / LOG)
    if not result["ok"]:
        result["tools"] = tools(server)
        _write(out / RECORD, _good(server) or result)
    return result


def _of_this_toolchain(out: Path) -> bool:
    """Return whether a build is there that this toolchain made: another's programs come first."""
    stamp = out / TOOLCHAIN
    return stamp.is_file() and stamp.read_text() == toolchain.name()


def _attempt(server: Server, new: Path) -> dict:
    """Build the server into the folder `new`; return what `_build` does."""
    name = server.name
    if nix.chosen() and server.not_in_nix:
        return _failed(server.not_in_nix)
    if nix.chosen():
        nix.require(name)
    # By sudo, which works in no user namespace.
    elif toolchain.name() == "debian" and not debian.install(server.packages.debian, new / LOG):
        return _failed(tail(new / LOG))
    words = [sys.executable, "-m", "deathmatch", "build", "--inside", name]
    status = build_aside.run(new, build_dir(name), words)
    attempt = new / ATTEMPT
    if not attempt.exists():
        raise _killed(name, f"ended with exit status {status}, and said nothing of why")
    result = json.loads(attempt.read_text())
    attempt.unlink()
    if "mistake" in result:
        raise UserError(*result["mistake"])
    return result


def _inside(server: Server) -> None:
    """Build the server, as `_attempt` wants it of a process of its own; leave the result."""
    try:
        result = _build(server)
        result["tools"] = tools(server)
    except UserError as error:
        result = {"mistake": [error.what, error.where, error.remedy]}
    _write(build_dir(server.name) / ATTEMPT, result)


def _write(path: Path, value: dict) -> None:
    partial = path.with_name(f"{path.name}.new")
    partial.write_text(json.dumps(value, indent=2) + "\n")
    partial.rename(path)


def main(given: argparse.Namespace) -> int:
    """Build the server named on the command line; return 1 if that fails."""
    server = files.server(given.server)
    if given.inside:
        _inside(server)
        return 0
    sandbox.die_with_owner()
    result = _tell(server)
    if given.record:
        return 0
    if again := forget_not_built(server):
        print(
            f"[build] {server.name}: due again, as it could not be built before: "
            f"{len(again)} of its trials",
            file=sys.stderr,
        )
    return 0 if result["ok"] else 1


def _tell(server: Server) -> dict:
    """Build the server, saying so and how it went; return what `write_build` does."""
    name = server.name
    print(f"[build] {name}", file=sys.stderr)
    result = write_build(server)
    if result["ok"]:
        print(f"[build] {name}: built, its version is: {result['version']}", file=sys.stderr)
        return result
    log = (build_dir(name) / LOG).relative_to(ROOT)
    where = f"  the whole log is {log}\n" if (ROOT / log).exists() else ""
    kept = "  the former build is of the same sources and tools, and stays\n"
    print(
        f"[build] {name} failed; its last lines:\n{result['log']}\n{where}"
        + (kept if _good(server) else ""),
        file=sys.stderr, end="",
    )  # fmt: skip
    return result


def built(server: Server) -> dict:
    """Return what `write_build` recorded, building first if that is of other sources or tools."""
    if found := _fitting(server, RECORD):
        return found
    if found := _good(server):
        _write(build_dir(server.name) / RECORD, found)
        return found
    if node.on_cluster() and (found := _of_sources(server)):
        return _on_node(server, found)
    _tell(server)
    return json.loads((build_dir(server.name) / RECORD).read_text())


def _of_sources(server: Server) -> dict | None:
    """Return the record of a build of the present sources and this toolchain, whatever its tools.

    Nothing is known of the tools of a build that failed.
    """
    for file in (RECORD, GOOD):
        path = build_dir(server.name) / file
        found = json.loads(path.read_text()) if path.exists() else {}
        if found.get("ok") and found["server_sha256"] == sources.fingerprint(server):
            return found
    return None


def _on_node(server: Server, found: dict) -> dict:
    """Return the record of a build that another node made, once this one has the same packages.

    It is not made again here, where another node may run it. Raises UserError if tools differ.
    """
    if toolchain.name() == "debian":
        with tempfile.NamedTemporaryFile() as log:
            if not debian.install(server.packages.debian, Path(log.name)):
                why = tail(Path(log.name))
                raise UserError(
                    f"this node cannot have the Debian packages of the server:\n{why}",
                    where=f"servers/{server.name}/server.toml, key packages.debian",
                    remedy="have them installed on every node of the partition",
                )
    now = tools(server)
    for tool in sorted(found["tools"].keys() | now.keys()):
        one, other = found["tools"].get(tool, "missing"), now.get(tool, "missing")
        if one != other:
            raise UserError(
                f"built on a node where {tool} is {one}, and here it is {other}",
                where=f"servers/{server.name}",
                remedy="install the same on every node of the partition, or name nodes that are "
                "alike, in profiles/slurm/config.yaml",
            )
    return found


def forget_not_built(server: Server) -> list[Path]:
    """Remove the server's trials that say that it is not built, if it is; return their folders."""
    if not verdicts.not_built(server.name) or not _good(server):
        return []
    return verdicts.forget(server.name)


def _good(server: Server) -> dict | None:
    """Return the record of the build that is there, if it is of the present sources and tools."""
    return _fitting(server, GOOD)


def _fitting(server: Server, file: str) -> dict | None:
    record = build_dir(server.name) / file
    if not record.exists():
        return None
    result = json.loads(record.read_text())
    now = (sources.fingerprint(server), tools(server))
    return result if (result.get("server_sha256"), result.get("tools")) == now else None


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
                "machine": node.kind() if node.on_cluster() else {},
            },
        )
        for server in servers
    ]


def _has_build(server: Server) -> bool:
    return (build_dir(server.name) / RECORD).exists()
