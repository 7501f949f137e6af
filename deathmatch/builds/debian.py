"""Debian packages that a server asks for, installed when it is first built."""

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

from deathmatch.plan.root import ROOT


def missing(packages: list[str]) -> list[str]:
    """Return those of the packages that are not installed."""
    query = ["dpkg-query", "--show", "--showformat", "${db:Status-Status}"]
    return [
        package
        for package in packages
        if subprocess.run([*query, package], capture_output=True, text=True).stdout != "installed"
    ]


def install(packages: list[str], log: Path) -> bool:
    """Install what is missing, as root or by sudo, starting no daemon; return whether it is there.

    The output, or the reason why not, is appended to `log`. One call at a time: apt allows no more.
    """
    (ROOT / "build").mkdir(exist_ok=True)
    with (ROOT / "build" / "apt.lock").open("w") as lock, log.open("a") as output:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = missing(packages)
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
