"""What a reader must know of the machine that measured, to compare."""

import os
import platform
import re
import subprocess
from collections.abc import Sequence

from deathmatch.hosts import memory, toolchain
from deathmatch.hosts.host import Host
from deathmatch.hosts.site import Site


def about(server: Host, site: Site, names: Sequence[str] = (), where: str = "") -> dict:
    """Return the server's machine (`hardware`) and the toolchain, for trial.json.

    `names` are the load generators used, as they are at `site`, and `where` what needs them: each
    has its version under its name. Costs a process for each of them, and one of git.
    """
    return {
        **hardware(server),
        "toolchain": toolchain.name(),
        "python": platform.python_version(),
        **site.clients(names, where),
        "snakemake": os.environ.get("DEATHMATCH_SNAKEMAKE", ""),
        "commit": _commit(),
    }


def hardware(host: Host) -> dict:
    """Return a host's CPU, CPUs, memory, kernel and system, as it has them itself."""
    cpus = host.read("/proc/cpuinfo")
    model = re.search(r"^model name\s*:\s*(.*)", cpus, re.MULTILINE)
    system = re.search(r'^PRETTY_NAME="?(.*?)"?$', host.read("/etc/os-release"), re.MULTILINE)
    return {
        "cpu": model[1].strip() if model else platform.processor(),
        "cpus": len(re.findall(r"^processor\s*:", cpus, re.MULTILINE)),
        "memory_bytes": memory.total_bytes(host),
        "kernel": host.read("/proc/sys/kernel/osrelease").strip(),
        "os": system[1] if system else "Linux",
    }


def _commit() -> str:
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"], capture_output=True, text=True
    )
    return done.stdout.strip()
