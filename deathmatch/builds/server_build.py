"""Building one server, as its `server.toml` says: `./shell deathmatch build NAME`."""

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

from deathmatch.builds import debian, nix, staging, toolchain
from deathmatch.builds.server_commands import build_dir, tools
from deathmatch.builds.steps import ATTEMPT, LOG, failed, inside, killed, write
from deathmatch.errors import UserError
from deathmatch.hosts import hardware, sandbox
from deathmatch.hosts.process import tail
from deathmatch.plan import files, paths
from deathmatch.plan.paths import ROOT
from deathmatch.plan.server import Server, digests, fingerprint

# Files of a server's build folder.
RECORD = "build.json"  # the record of the last attempt
GOOD = "built.json"  # the record of the build that is there
TOOLCHAIN = "toolchain"


def write_build(server: Server) -> dict:
    """Build the server and return its record.

    {"ok", "version", "log", "server_sha256", "sources", "tools", "wall_us"}.

    `build.json` of its build folder records it, and trials refer to that. A build that fails
    leaves the former one where it is; if that is of the same sources and tools, so does the record.
    """
    out, began_ns = build_dir(server.name), time.monotonic_ns()
    # The sources may change while it builds.
    made_of = {"server_sha256": fingerprint(server), "sources": digests(server)}
    stamp = out / TOOLCHAIN
    # The programs of another toolchain come first.
    keep = stamp.is_file() and stamp.read_text() == toolchain.name()
    with staging.folder(out, keep) as new:
        for file in (RECORD, GOOD, LOG):
            (new / file).unlink(missing_ok=True)
        (new / TOOLCHAIN).write_text(toolchain.name())
        result = {"tools": {}} | _attempt(server, new) | made_of
        result["wall_us"] = (time.monotonic_ns() - began_ns) // 1000
        if result["ok"]:
            write(new / GOOD, result)
            write(new / RECORD, result)
        if result["ok"] or not (keep and (out / GOOD).exists()):
            staging.swap(new, out)
        elif (new / LOG).exists():
            shutil.copy(new / LOG, out / LOG)
    if not result["ok"]:
        result["tools"] = tools(server)
        write(out / RECORD, _good(server) or result)
    return result


def _attempt(server: Server, new: Path) -> dict:
    """Build the server into the folder `new`; return what the steps say."""
    name = server.name
    if nix.chosen() and server.not_in_nix:
        return failed(server.not_in_nix)
    if nix.chosen():
        nix.require(name)
    # Here, as sudo works in no user namespace.
    elif toolchain.name() == "debian" and not debian.install(server.packages.debian, new / LOG):
        return failed(tail(new / LOG))
    words = [sys.executable, "-m", "deathmatch", "build", "--inside", name]
    status = staging.run(new, build_dir(name), words)
    attempt = new / ATTEMPT
    if not attempt.exists():
        raise killed(name, f"ended with exit status {status}, and said nothing of why")
    result = json.loads(attempt.read_text())
    attempt.unlink()
    if "mistake" in result:
        raise UserError(*result["mistake"])
    return result


def main(given: argparse.Namespace) -> int:
    """Build the server named on the command line; return 1 if that fails."""
    server = files.server(given.server)
    if given.inside:
        inside(server)
        return 0
    sandbox.die_with_owner()
    result = _build_and_report(server)
    return 0 if result["ok"] or given.record else 1


def _build_and_report(server: Server) -> dict:
    """Build the server, report it; return what `write_build` does."""
    name = server.name
    changed = changes(server)
    print(f"[build] {name}{': ' if changed else ''}{changed}", file=sys.stderr)
    result = write_build(server)
    if result["ok"]:
        print(f"[build] {name}: built, its version is: {result['version']}", file=sys.stderr)
        return result
    print(f"[build] {name} failed; its last lines:\n{result['log']}", file=sys.stderr)
    log = build_dir(name) / LOG
    if log.exists():
        print(f"  the whole log is {log.relative_to(ROOT)}", file=sys.stderr)
    if _good(server):
        print("  the former build is of the same sources and tools, and stays", file=sys.stderr)
    return result


def built(server: Server) -> dict:
    """Return what `write_build` recorded, building first if that is of other sources or tools."""
    if record := _fitting(server, RECORD):
        return record
    if record := _good(server):
        write(build_dir(server.name) / RECORD, record)
        return record
    if hardware.on_cluster() and (record := _of_sources(server)):
        return _on_node(server, record)
    _build_and_report(server)
    return json.loads((build_dir(server.name) / RECORD).read_text())


def _of_sources(server: Server) -> dict | None:
    """Return the record of a build of the present sources and this toolchain, whatever its tools.

    Nothing is known of the tools of a build that failed.
    """
    for file in (RECORD, GOOD):
        path = build_dir(server.name) / file
        record = json.loads(path.read_text()) if path.exists() else {}
        if record.get("ok") and record["server_sha256"] == fingerprint(server):
            return record
    return None


def _on_node(server: Server, record: dict) -> dict:
    """Return the record of a build that another node made, once this one has the same packages.

    It is not built again here, as another node may be running it. Raises UserError if tools differ.
    """
    if toolchain.name() == "debian":
        with tempfile.NamedTemporaryFile() as log:
            if not debian.install(server.packages.debian, Path(log.name)):
                why = tail(Path(log.name))
                raise UserError(
                    f"this node cannot have the Debian packages of the server:\n{why}",
                    where=f"{paths.folder(server.name)}/server.toml, key packages.debian",
                    remedy="have them installed on every node of the partition",
                )
    now = tools(server)
    for tool in sorted(record["tools"].keys() | now.keys()):
        there, here = record["tools"].get(tool, "missing"), now.get(tool, "missing")
        if there != here:
            raise UserError(
                f"built on a node where {tool} is {there}, and here it is {here}",
                where=paths.folder(server.name),
                remedy="install the same on every node of the partition, or name nodes that are "
                "alike, in profiles/slurm/config.yaml",
            )
    return record


def is_built(server: Server) -> bool:
    """Return whether a build is there that succeeded, of the present sources and tools."""
    return _good(server) is not None


def changes(server: Server) -> str:
    """Return "servers/x/a.py is new" for each source changed since its last build, as known."""
    record = build_dir(server.name) / RECORD
    built = json.loads(record.read_text()).get("sources") if record.exists() else None
    now = digests(server) if built is not None else {}
    return ", ".join(
        f"{name} is {'gone' if name not in now else 'changed' if name in built else 'new'}"
        for name in sorted({*now, *(built or {})}) if now.get(name) != built.get(name)
    )  # fmt: skip


def _good(server: Server) -> dict | None:
    """Return the record of the build that is there, if it is of the present sources and tools."""
    return _fitting(server, GOOD)


def _fitting(server: Server, file: str) -> dict | None:
    record = build_dir(server.name) / file
    if not record.exists():
        return None
    result = json.loads(record.read_text())
    now = (fingerprint(server), tools(server))
    return result if (result.get("server_sha256"), result.get("tools")) == now else None
