"""What a host's machine is, as it has it itself: one kind of machine is one of these."""

import platform
import re

from deathmatch.hosts import memory
from deathmatch.hosts.host import Host


def of(host: Host) -> dict:
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
