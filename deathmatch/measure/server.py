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
from deathmatch.hosts import debian, nix, sandbox, toolchain
from deathmatch.plan import config, matrix

LOG_TAIL_LINES = 20


def build_dir(name: str) -> Path:
    """Return the folder into which the server is built; its whole path, for commands to use."""
    return config.ROOT / "build" / "servers" / name


def build(name: str) -> dict:
    """Build one server and return {"ok", "version", "log"}.

    `log` holds the last lines of a failed command. The build's output goes to `build.log`
    beside the result.
    """
    server = config.load("server", name)
    out = build_dir(name)
    _leave_no_other_toolchain(out)
    folder = config.ROOT / "servers" / name
    (out / "build.log").unlink(missing_ok=True)
    if nix.chosen() and "not_in_nix" in server:
        return {"ok": False, "version": None, "log": server["not_in_nix"]}
    packages = server.get("packages", {}).get("debian", [])
    if toolchain.name() == "debian":
        installed = debian.install(packages, out / "build.log")
    else:
        installed = not nix.chosen() or nix.build(name, package(name), out / "build.log")
    if not installed:
        return {"ok": False, "version": None, "log": tail(out / "build.log")}
    with (out / "build.log").open("a") as log:
        for command in _build_commands(server, folder):
            log.write(f"$ {command}\n")
            log.flush()
            status = subprocess.run(
                ["sh", "-ec", command], cwd=folder, env=environment(name),
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            ).returncode  # fmt: skip
            if status != 0:
                return {"ok": False, "version": None, "log": tail(out / "build.log")}
    if foreign := _foreign_tools(name):
        return {"ok": False, "version": None, "log": foreign}
    version = subprocess.run(
        ["sh", "-c", _fill(server["version"], name, {})], cwd=folder, env=environment(name),
        capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    lines = (version.stdout + version.stderr).strip().splitlines()
    if version.returncode != 0 or not lines:
        shown = "\n".join(lines) or "it printed nothing"
        return {"ok": False, "version": None, "log": f"$ {server['version']}\n{shown}"}
    return {"ok": True, "version": lines[0], "log": ""}


def _leave_no_other_toolchain(out: Path) -> None:
    """Make the build folder; empty one that another toolchain filled: its programs come first."""
    stamp = out / "toolchain"
    if out.exists() and (not stamp.exists() or stamp.read_text() != toolchain.name()):
        shutil.rmtree(out)
    out.mkdir(parents=True, exist_ok=True)
    stamp.write_text(toolchain.name())


def _foreign_tools(name: str) -> str:
    """Return which of the server's tools Nix did not bring; empty where all are its own.

    A program of the system under a Nix shell would be measured under Nix's name.
    """
    if not nix.chosen():
        return ""
    path = environment(name)["PATH"]
    found = {tool: shutil.which(tool, path=path) for tool in config.load("server", name)
             .get("packages", {}).get("tools", [])}  # fmt: skip
    own = (toolchain.STORE, build_dir(name))
    return "\n".join(
        f"{tool}, which packages.tools of servers/{name}/server.toml names, is {where or 'missing'}"
        f" and not of Nix: name its package in packages.nix there, or in nix/servers/{name}.nix"
        for tool, where in found.items()
        if not where or not any(Path(where).resolve().is_relative_to(place) for place in own)
    )


def _build_commands(server: dict, folder: Path) -> list[str]:
    name = folder.name
    commands = []
    # Nix gives the server's Python packages itself.
    if "pypi" in server.get("packages", {}) and not nix.chosen():
        venv = shlex.quote(str(build_dir(name) / "venv"))
        lock = shlex.quote(server["packages"]["pypi"])
        commands += [
            f"/usr/bin/python3 -m venv --clear {venv}",
            f"{venv}/bin/pip install --quiet --require-hashes -r {lock}",
        ]
    if "build" in server:
        commands.append(_fill(server["build"], name, {}))
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
        return command.format(
            build=build_dir(name), folder=config.ROOT / "servers" / name, **values
        )
    except (KeyError, IndexError, ValueError) as error:
        known = ", ".join(f"{{{key}}}" for key in ["build", "folder", *values])
        path = config.path_of("server", name)
        raise UserError(
            f"cannot fill the placeholders of `{command}`: {error}",
            where=str(path.relative_to(config.ROOT)),
            remedy=f"placeholders here: {known}; a literal brace is written twice",
        ) from None


def words(name: str, values: dict) -> list[str]:
    """Return the server's start command as words, its placeholders filled."""
    return shlex.split(_fill(config.load("server", name)["run"], name, values))


def warm_up_s(name: str, planned_s: float = 0) -> float:
    """Return for how many seconds the server is asked before it is timed.

    The longer of what it needs and what the dataset plans for the experiment.
    """
    return max(planned_s, config.load("server", name).get("warm_up_s", 1))


def tail(log: Path, lines: int = LOG_TAIL_LINES) -> str:
    """Return the last lines of a log, what is not UTF-8 replaced, paths from the project's root."""
    text = log.read_text(errors="replace").replace(f"{config.ROOT}/", "")
    return "\n".join(text.splitlines()[-lines:])


def write_build(name: str) -> dict:
    """Build the server, record the result in `build.json` of its build folder, return it."""
    fingerprint = matrix.fingerprint(name)
    result = build(name) | {"server_sha256": fingerprint, "tools": tools(name)}
    aside = build_dir(name) / "build.json.new"
    aside.write_text(json.dumps(result, indent=2) + "\n")
    aside.rename(aside.with_name("build.json"))
    return result


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command line takes."""
    parser.add_argument("server", help="a folder in servers/")


def main(given: argparse.Namespace) -> int:
    """Build the server named on the command line; a failed build is a result too."""
    name = given.server
    sandbox.die_with_owner()
    print(f"[build] {name}", file=sys.stderr)
    result = write_build(name)
    if not result["ok"]:
        print(f"[build] {name} failed; its last lines:\n{result['log']}", file=sys.stderr)
    return 0


def built(name: str) -> dict:
    """Return what `write_build` recorded, building first if that is of other sources or tools."""
    record = build_dir(name) / "build.json"
    if record.exists():
        result = json.loads(record.read_text())
        if (result.get("server_sha256"), result.get("tools")) == (
            matrix.fingerprint(name),
            tools(name),
        ):
            return result
    print(f"[build] {name}", file=sys.stderr)
    return write_build(name)


def tools(name: str) -> dict[str, str]:
    """Return {tool: identity} of the server's programs and packages, without those missing."""
    packages = config.load("server", name).get("packages", {})
    path = environment(name)["PATH"]
    programs = {tool: shutil.which(tool, path=path) for tool in packages.get("tools", [])}
    found = {"toolchain": toolchain.name()}
    if nix.chosen():
        # Not there before the first build.
        programs["package"] = package(name) if package(name).exists() else None
    else:
        found |= toolchain.versions(packages.get("debian", []))
    return found | toolchain.identify({tool: file for tool, file in programs.items() if file})


def on_this_machine(names: Iterable[str]) -> list[tuple[str, dict]]:
    """Return for each server what a trial would record now, as `toolchain.check` takes it.

    What is not built yet has no tools of its own to tell.
    """
    return [
        (
            "this machine now",
            {
                "server": name,
                "tools": {
                    "harness": toolchain.harness(),
                    "server": tools(name) if (build_dir(name) / "build.json").exists() else {},
                },
            },
        )
        for name in names
    ]
