"""What a reader must know of the machine that measured, to compare."""

import os
import platform
import subprocess
from pathlib import Path

import psutil

from deathmatch.hosts import clients, toolchain


def about(names: list[str]) -> dict:
    """Return the machine's CPU, memory, kernel, system and toolchain, for trial.json.

    `names` are the load generators used: each has its version under its name. Costs a process for
    each of them, and one of git.
    """
    model = next(
        (line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
         if line.startswith("model name")),
        platform.processor(),
    )  # fmt: skip
    return {
        "cpu": model,
        "cpus": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "kernel": platform.release(),
        "os": platform.freedesktop_os_release().get("PRETTY_NAME", "Linux"),
        "toolchain": toolchain.name(),
        "python": platform.python_version(),
        **{name: clients.version(name) for name in names},
        "snakemake": os.environ.get("DEATHMATCH_SNAKEMAKE", ""),
        "commit": _commit(),
    }


def _commit() -> str:
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"], capture_output=True, text=True
    )
    return done.stdout.strip()
