"""Debian packages that a server asks for, installed when it is first built."""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from deathmatch.plan.root import ROOT


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Return {package: "package version"} of those Debian packages that are installed."""
    wanted = sorted(set(packages))
    if not wanted or not shutil.which("dpkg-query"):
        return {}
    shown = "${db:Status-Status} ${binary:Package} ${Package} ${Version}\n"
    words = ["dpkg-query", "--show", "--showformat", shown, *wanted]
    lines = subprocess.run(words, capture_output=True, text=True).stdout.splitlines()
    known = {}
    for status, full, package, version in map(str.split, lines):
        if status == "installed":
            known[full] = known[package] = f"{package} {version}"
    return {package: known[package] for package in wanted if package in known}


def install(packages: list[str], log: Path) -> bool:
    """Install what is missing, as root or by sudo, starting no daemon; return whether it is there.

    The output, or the reason why not, is appended to `log`. One call at a time: apt allows no more.
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
