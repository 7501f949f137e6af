"""The steps of one build, in a process of their own: a server's commands, and its version."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import IO, Any

from deathmatch.builds import nix, package_installs, toolchain
from deathmatch.builds.server_commands import build_dir, environment, fill, package, tools
from deathmatch.errors import UserError, printable
from deathmatch.hosts.process import TAIL_LINES, tail
from deathmatch.plan import paths
from deathmatch.plan.server import Server, source_files

# The exit statuses of a shell that was killed, and of a shell whose command was killed.
KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)

# Time limits: ten times the slowest build on two cores, and the start of an interpreter on one busy
# core.
BUILD_S, VERSION_S = 3600, 60

# Files of a server's build folder.
LOG = "build.log"
ATTEMPT = "attempt.json"


def _build(server: Server) -> dict:
    """Build one server and return {"ok", "version", "log"}.

    `log` has the last lines of a failed command. All output is written to LOG in the build folder.
    """
    name = server.name
    out = build_dir(name)
    if nix.chosen() and not nix.build(name, package(name), out / LOG):
        return failed(tail(out / LOG))
    before = source_files(server)
    with (out / LOG).open("a") as log:
        own = [fill(server.build, server, {})] if server.build else []
        for command in package_installs.commands(server, out, nix.chosen()) + own:
            log.write(f"$ {command}\n")
            log.flush()
            status = _run(server, ["sh", "-ec", command], BUILD_S, log, log)
            if status is None:
                log.write(f"it was killed, as it took longer than {BUILD_S} s: {command}\n")
                log.flush()
            if status != 0:
                return failed(tail(out / LOG))
        # A server's sources decide which of its trials are valid, so no build may change them.
        paths.ignored.cache_clear()
        if added := sorted({*source_files(server)}.difference(before)):
            return failed(
                f"the build wrote into the server's own folder: {', '.join(added)}\n"
                "let it write into {build}, for example copy the sources there first; then remove "
                f"these files: rm {' '.join(added)}"
            )
        result = _version(server)
        log.write(result["log"] or f"version: {result['version']}\n")
    return result


def _version(server: Server) -> dict:
    """Run the version command of a built server; return a result as `_build` does."""
    if foreign := _foreign_tools(server):
        return failed(foreign)
    # Files, not pipes: a child that the command leaves behind would keep a pipe open.
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        words = ["sh", "-c", fill(server.version, server, {})]
        status = _run(server, words, VERSION_S, output, errors)
        for file in (output, errors):
            file.seek(0)
        printed = (output.read() + errors.read()).decode(errors="replace")
    lines = list(map(printable, printed.strip().splitlines()))
    if status == 0 and lines:
        return {"ok": True, "version": lines[0], "log": ""}
    shown = "\n".join(lines[-TAIL_LINES:]) or "it printed nothing"
    ended = f" and ended with exit status {status}" if status else ""
    if status is None:
        ended = f": it was killed, as it took longer than {VERSION_S} s"
    return failed(f"$ {server.version}\n{shown}\nthe version command failed{ended}")


def _run(
    server: Server, words: list[str], limit_s: int, output: IO[Any], errors: IO[Any]
) -> int | None:
    """Run a command of a server to its end; return its exit status, None if it took too long.

    Processes that it leaves behind end with the whole build. Raises UserError if it was killed.
    """
    process = subprocess.Popen(
        words, cwd=server.system, env=environment(server.name),
        stdin=subprocess.DEVNULL, stdout=output, stderr=errors, start_new_session=True,
    )  # fmt: skip
    try:
        status = process.wait(limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None
    if status in KILLED:
        raise killed(server.name, f"was killed (SIGKILL) at: {words[-1]}")
    return status


def killed(name: str, what: str) -> UserError:
    """Return the error of a build that was killed, which is no fault of the server."""
    return UserError(
        f"the build {what}",
        where=paths.folder(name),
        remedy="run again to build it again; if it is killed each time, `dmesg` shows whether "
        "memory ran out",
    )


def failed(log: str) -> dict:
    """Return the result of a build that failed, with the end of its log."""
    return {"ok": False, "version": None, "log": log}


def _foreign_tools(server: Server) -> str:
    """Return which of the server's tools are not from Nix; "" if all are, or without Nix.

    A program of the system would be recorded as one of Nix.
    """
    if not nix.chosen():
        return ""
    name = server.name
    path = environment(name)["PATH"]
    programs = {tool: shutil.which(tool, path=path) for tool in server.packages.tools}
    own = (toolchain.STORE, build_dir(name))
    return "\n".join(
        f"the tool {tool} of {paths.folder(name)}/server.toml, key packages.tools, is "
        f"{where or 'missing'} and not from Nix: add its package to packages.nix there, or to "
        f"nix/servers/{name}.nix"
        for tool, where in programs.items()
        if not where or not any(Path(where).resolve().is_relative_to(place) for place in own)
    )


def inside(server: Server) -> None:
    """Build the server in the process that `server_build` starts; write the result to ATTEMPT."""
    try:
        result = _build(server)
        result["tools"] = tools(server)
    except UserError as error:
        result = {"mistake": [error.what, error.where, error.remedy]}
    write(build_dir(server.name) / ATTEMPT, result)


def write(path: Path, value: dict) -> None:
    """Write a record atomically."""
    partial = path.with_name(f"{path.name}.new")
    partial.write_text(json.dumps(value, indent=2) + "\n")
    partial.rename(path)
