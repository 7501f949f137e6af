"""A server's virtual environment, of a hash-locked list of Python packages."""

import hashlib
import shlex
import subprocess
from pathlib import Path

# Debian's own, whatever else a user has on PATH.
PYTHON = "/usr/bin/python3"


def commands(lock: Path, venv: Path) -> list[str]:
    """Return the shell commands that make `venv` of the list `lock`.

    They only say so where it was made whole, from the same list, by the same Python.
    """
    made_of = f"{hashlib.sha256(lock.read_bytes()).hexdigest()} {_python()}"
    stamp = venv / "made-of"
    if stamp.is_file() and stamp.read_text().strip() == made_of:
        return [f"echo 'it stays, made of the same {lock.name} by the same Python'"]
    folder = shlex.quote(str(venv))
    return [
        f"{PYTHON} -m venv --clear {folder}",
        f"{folder}/bin/pip install --quiet --require-hashes -r {shlex.quote(str(lock))}",
        f"echo {shlex.quote(made_of)} >{shlex.quote(str(stamp))}",
    ]


def _python() -> str:
    script = "import sys; print(sys.implementation.cache_tag, *sys.version_info[:3])"
    return subprocess.run([PYTHON, "-c", script], capture_output=True, text=True).stdout.strip()
