"""The hardware and the system of a machine, and whether machines are of one kind."""

import os
import platform
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

RUN = "DEATHMATCH_RUN"
"""The name of the run that a job belongs to; set on a cluster only, by the submitting process."""

MEMORY_SHARE = 0.1
"""The share of the larger one by which the memories of two machines of one kind may differ: Linux's
total leaves out what firmware and kernel use, which varies."""


def read(path: str) -> str:
    """Return the text of a file of this machine."""
    return Path(path).read_text(errors="replace")


def describe(read: Callable[[str], str] = read) -> dict:
    """Return a machine's CPU, number of CPUs, memory, kernel and system; `read` reads its files."""
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


def cpu_numbers(text: str) -> list[int]:
    """Return the numbers in a list of the kernel or taskset(1), such as "0-3,8" or ""."""
    numbers: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return numbers


def on_cluster() -> bool:
    """Return whether this process belongs to a run on a cluster: it submits jobs, or runs one."""
    return RUN in os.environ


def differences(records: Iterable[tuple[str, dict]]) -> Iterator[tuple[str, dict[str, str]]]:
    """Return each property in which machines of a round differ, with {value: where first seen}.

    A record is (where, trial), the latter as in `trial.json`, of which `experiment`, `n` and
    `machine` are read. Rounds may have different machines, as ratios are formed within a round.
    """
    kinds: dict[tuple, dict] = {}
    for where, trial in records:
        for key in ("cpu", "kernel", "cpus", "memory_bytes", "os"):
            value = (trial.get("machine") or {}).get(key)
            values = kinds.setdefault((key, trial.get("experiment"), trial.get("n")), {})
            if value is not None and not any(_same(key, value, other) for other in values):
                values[value] = where
    for (key, *_), values in kinds.items():
        if len(values) > 1:
            yield key, {f"{value}": where for value, where in values.items()}


def _same(key: str, value, other) -> bool:
    if key == "memory_bytes":
        return abs(value - other) <= MEMORY_SHARE * max(value, other)
    return value == other
