"""Texts of the kernel and of lscpu(1), read: CPU lists, times, pressure."""

import json
import re
from collections.abc import Iterable

STAT = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


def lscpu(text: str) -> dict[str, str]:
    """Return the fields of `lscpu --json`, flat as before util-linux 2.39 or nested as since."""
    found = {}
    rows = list(json.loads(text)["lscpu"])
    while rows:
        row = rows.pop()
        rows += row.get("children", [])
        if row.get("data") is not None:
            found[row["field"].removesuffix(":")] = row["data"]
    return found


def cpu_list(text: str) -> list[int]:
    """Return the numbers of a kernel's list, such as "0-3,8" or ""."""
    numbers: list[int] = []
    for part in text.strip().split(","):
        if part:
            first, _, last = part.partition("-")
            numbers += range(int(first), int(last or first) + 1)
    return numbers


def cpu_ranges(cpus: Iterable[int]) -> str:
    """Return numbers as the kernel and taskset(1) write them, such as "0-3,8"."""
    parts: list[list[int]] = []
    for cpu in sorted(cpus):
        if parts and cpu == parts[-1][-1] + 1:
            parts[-1][1:] = [cpu]
        else:
            parts.append([cpu])
    return ",".join("-".join(map(str, part)) for part in parts)


def cpu_times(text: str) -> dict[str, dict[str, int]]:
    """Return {"cpu" or "cpu<N>": {mode: ticks}} of /proc/stat (proc(5))."""
    lines = (line.split() for line in text.splitlines() if line.startswith("cpu"))
    return {name: dict(zip(STAT, map(int, times))) for name, *times in lines}


def stalled_us(text: str) -> int:
    """Return how long some task has been waiting, of a file in /proc/pressure."""
    return int(re.search(r"^some .*total=(\d+)", text, re.MULTILINE)[1])
