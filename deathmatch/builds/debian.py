"""Debian packages of servers, installed when a server is first built."""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from deathmatch.plan.paths import ROOT

_STATUS = Path("/var/lib/dpkg/status")


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Return {package: "package version"} of the Debian packages that are installed."""
    wanted = sorted(set(packages))
    shown = "${db:Status-Status} ${binary:Package} ${Package} ${Version}\n"
    known = {}
    for line in _asked("--show", "--showformat", shown, *wanted) if wanted else ():
        status, full, package, version = line.split()
        if status == "installed":
            known[full] = known[package] = f"{package} {version}"
    return {package: known[package] for package in wanted if package in known}


def owners(paths: Iterable[Path]) -> dict[Path, str]:
    """Return {file: "package version"} of the files that belong to a Debian package."""
    # Debian 12 still lists some files in /bin and /lib, which are now links into /usr.
    wanted = {str(path): path for path in sorted(paths)}
    wanted |= {text.removeprefix("/usr"): path for text, path in wanted.items()}
    # A line is "package: path"; files with several packages or a diversion are left out.
    lines = [line.rpartition(": ") for line in _asked("--search", *wanted)] if wanted else []
    owned = {wanted[path]: owner for owner, _, path in lines if path in wanted and "," not in owner}
    known = versions(owned.values())
    return {path: known[owner] for path, owner in owned.items() if owner in known}


def _asked(*words: str) -> tuple[str, ...]:
    """Return the lines that dpkg-query prints; none without dpkg-query.

    A search takes some 50 ms, and each trial repeats it: the answer is cached until dpkg changes
    its list of packages.
    """
    program = shutil.which("dpkg-query")
    if not program or not _STATUS.exists():
        return ()
    return _answer(program, words, _STATUS.stat().st_mtime_ns)


@cache
def _answer(program: str, words: tuple[str, ...], _changed_ns: int) -> tuple[str, ...]:
    done = subprocess.run([program, *words], capture_output=True, text=True)
    return tuple(done.stdout.splitlines())


def install(packages: list[str], log: Path) -> bool:
    """Install missing packages, as root or by sudo, without starting daemons; return the success.

    The output, or the reason of a failure, is appended to `log`. A lock admits one call at a time,
    as apt does.
    """
    (ROOT / "build").mkdir(exist_ok=True)
    with (ROOT / "build" / "apt.lock").open("w") as lock, log.open("a") as output:
        fcntl.flock(lock, fcntl.LOCK_EX)
        installed = versions(packages)
        wanted = [package for package in packages if package not in installed]
        if not wanted:
            return True
        words = [str(ROOT / "toolchains" / "debian" / "install"), *wanted]
        if os.geteuid() != 0:
            if not shutil.which("sudo"):
                output.write(
                    f"packages are missing ({' '.join(wanted)}) and only root can install them: "
                    "run as root, or install sudo\n"
                )
                return False
            words = ["sudo", *words]
        output.write(f"$ {' '.join(words)}\n")
        output.flush()
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        return done.returncode == 0
