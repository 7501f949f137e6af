"""What a host's machine is, as it has it itself: one kind of machine is one of these."""

import platform
import re

from deathmatch.hosts import memory
from deathmatch.hosts.host import Host


def of(host: Host) -> dict:
    """Return a host's CPU, CPUs, memory, kernel and system, as it has them itself."""
    cpus = host.read("/proc/cpuinfo")
    system = re.search(r'^PRETTY_NAME="?(.*?)"?$', host.read("/etc/os-release"), re.MULTILINE)
    return {
        "cpu": processor(cpus),
        "cpus": len(re.findall(r"^processor\s*:", cpus, re.MULTILINE)),
        "memory_bytes": memory.total_bytes(host),
        "kernel": host.read("/proc/sys/kernel/osrelease").strip(),
        "os": system[1] if system else "Linux",
    }


def processor(cpuinfo: str) -> str:
    """Return a processor's name, with family and model where /proc/cpuinfo has them (proc(5)).

    A hypervisor may give processors of several generations one name, such as "AMD EPYC".
    """
    name, family, model = (
        found[1].strip() if found else ""
        for key in ("model name", "cpu family", "model")
        for found in [re.search(rf"^{key}\s*:(.*)", cpuinfo, re.MULTILINE)]
    )
    name = name or platform.processor()
    return f"{name}, family {family} model {model}" if family and model else name
