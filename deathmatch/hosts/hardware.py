"""What hardware and system a machine has: machines of one kind agree in this."""

import platform
import re
from collections.abc import Callable
from pathlib import Path


def read(path: str) -> str:
    """Return the text of a file of this machine."""
    return Path(path).read_text(errors="replace")


def describe(read: Callable[[str], str] = read) -> dict:
    """Return a machine's CPU, CPUs, memory, kernel and system; `read` returns a file of it."""
    cpus = read("/proc/cpuinfo")
    system = re.search(r'^PRETTY_NAME="?(.*?)"?$', read("/etc/os-release"), re.MULTILINE)
    return {
        "cpu": processor(cpus),
        "cpus": len(re.findall(r"^processor\s*:", cpus, re.MULTILINE)),
        "memory_bytes": memory_bytes(read),
        "kernel": read("/proc/sys/kernel/osrelease").strip(),
        "os": system[1] if system else "Linux",
    }


def memory_bytes(read: Callable[[str], str] = read) -> int:
    """Return a machine's memory (proc(5), /proc/meminfo)."""
    return int(re.search(r"^MemTotal:\s+(\d+) kB", read("/proc/meminfo"), re.M)[1]) * 1024


def processor(cpuinfo: str) -> str:
    """Return a processor's name, with family and model where /proc/cpuinfo has them (proc(5)).

    A hypervisor may give processors of several generations one name, such as "AMD EPYC".
    """
    name, family, model = (
        match[1].strip() if match else ""
        for key in ("model name", "cpu family", "model")
        for match in [re.search(rf"^{key}\s*:(.*)", cpuinfo, re.MULTILINE)]
    )
    name = name or platform.processor()
    return f"{name}, family {family} model {model}" if family and model else name
