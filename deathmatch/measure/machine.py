"""What a reader must know of the machine that measured, to compare."""

import os
import platform
import re
import subprocess
from collections.abc import Sequence

from deathmatch.hosts import memory, toolchain
from deathmatch.hosts.host import Host
from deathmatch.hosts.site import Site


def about(server: Host, site: Site, names: Sequence[str]) -> dict:
    """Return CPU, memory, kernel, system of the server's host and the toolchain, for trial.json.

    `names` are the load generators used, as they are at `site`: each has its version under its
    name. Costs a process for each of them, and one of git.
    """
    cpus = server.read("/proc/cpuinfo")
    model = re.search(r"^model name\s*:\s*(.*)", cpus, re.MULTILINE)
    system = re.search(r'^PRETTY_NAME="?(.*?)"?$', server.read("/etc/os-release"), re.MULTILINE)
    return {
        "cpu": model[1].strip() if model else platform.processor(),
        "cpus": len(re.findall(r"^processor\s*:", cpus, re.MULTILINE)),
        "memory_bytes": memory.total_bytes(server),
        "kernel": server.read("/proc/sys/kernel/osrelease").strip(),
        "os": system[1] if system else "Linux",
        "toolchain": toolchain.name(),
        "python": platform.python_version(),
        **site.clients(names),
        "snakemake": os.environ.get("DEATHMATCH_SNAKEMAKE", ""),
        "commit": _commit(),
    }


def _commit() -> str:
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"], capture_output=True, text=True
    )
    return done.stdout.strip()
