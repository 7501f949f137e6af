"""Build one server, as its `server.toml` says: `./shell deathmatch build NAME`."""

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

    The record is written to RECORD, which trials refer to. If a build fails, the former build
    stays, and so does its record if it has the same sources and tools.
    """
    out, began_ns = build_dir(server.name), time.monotonic_ns()
    # Now, as the sources may change during the build.
    made_of = {"server_sha256": fingerprint(server), "sources": digests(server)}
    stamp = out / TOOLCHAIN
    # A build of another toolchain does not stay: its programs would be found first.
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
        write(out / RECORD, _fitting(server, GOOD) or result)
    return result


def _attempt(server: Server, new: Path) -> dict:
    """Build the server into the folder `new`; return the result of its steps."""
    name = server.name
    if nix.chosen() and server.not_in_nix:
        return failed(server.not_in_nix)
    if nix.chosen():
        nix.require(name)
    # Before the steps, which run in a user namespace: sudo does not work there.
    elif toolchain.name() == "debian" and not debian.install(server.packages.debian, new / LOG):
        return failed(tail(new / LOG))
    words = [sys.executable, "-m", "deathmatch", "build", "--inside", name]
    status = staging.run(new, build_dir(name), words)
    attempt = new / ATTEMPT
    if not attempt.exists():
        raise killed(name, f"ended with exit status {status}, without a reason")
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
    """Build the server and print the result; return what `write_build` does."""
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
    if is_built(server):
        print("  the former build stays: it has the same sources and tools", file=sys.stderr)
    return result


def built(server: Server) -> dict:
    """Return what `write_build` recorded; build first if sources or tools have changed since."""
    if record := _fitting(server, RECORD):
        return record
    if record := _fitting(server, GOOD):
        write(build_dir(server.name) / RECORD, record)
        return record
    if hardware.on_cluster() and (record := _of_sources(server)):
        return _on_node(server, record)
    _build_and_report(server)
    return record_of(server.name)


def record_of(name: str, file: str = RECORD) -> dict:
    """Return a record of the build of the server `name`; {} for none or a damaged one."""
    try:
        return json.loads((build_dir(name) / file).read_text())
    except (FileNotFoundError, ValueError):
        return {}


def _of_sources(server: Server) -> dict | None:
    """Return the record of a successful build of the present sources, whatever its tools."""
    for file in (RECORD, GOOD):
        record = record_of(server.name, file)
        if record.get("ok") and record["server_sha256"] == fingerprint(server):
            return record
    return None


def _on_node(server: Server, record: dict) -> dict:
    """Install a server's packages on this node; return the record of its build by another node.

    It is not built again here, as another node may be running it. Raises UserError if tools differ.
    """
    if toolchain.name() == "debian":
        with tempfile.NamedTemporaryFile() as log:
            if not debian.install(server.packages.debian, Path(log.name)):
                why = tail(Path(log.name))
                raise UserError(
                    f"the server's Debian packages cannot be installed on this node:\n{why}",
                    where=f"{paths.folder(server.name)}/server.toml, key packages.debian",
                    remedy="ask for them to be installed on every node of the partition",
                )
    now = tools(server)
    for tool in sorted(record["tools"].keys() | now.keys()):
        there, here = record["tools"].get(tool, "missing"), now.get(tool, "missing")
        if there != here:
            raise UserError(
                f"built on a node where {tool} is {there}, and here it is {here}",
                where=paths.folder(server.name),
                remedy="install the same version on every node of the partition, or choose nodes "
                "of one kind in profiles/slurm/config.yaml",
            )
    return record


def is_built(server: Server) -> bool:
    """Return whether there is a successful build of the present sources and tools."""
    return _fitting(server, GOOD) is not None


def changes(server: Server) -> str:
    """Return "servers/x/a.py is new" for each source that has changed since its last build."""
    built = record_of(server.name).get("sources")
    now = digests(server) if built is not None else {}
    return ", ".join(
        f"{name} is {'gone' if name not in now else 'changed' if name in built else 'new'}"
        for name in sorted({*now, *(built or {})}) if now.get(name) != built.get(name)
    )  # fmt: skip


def _fitting(server: Server, file: str) -> dict | None:
    """Return the record if it is of the present sources and tools."""
    record = record_of(server.name, file)
    if not record or record.get("server_sha256") != fingerprint(server):
        return None
    return record if record.get("tools") == tools(server) else None
