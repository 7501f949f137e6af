"""The usual sources of facts: a file of the kernel, a file for each CPU, a field of lscpu(1)."""

from collections.abc import Callable
from typing import Any

from deathmatch.hosts.audit.fact import Source
from deathmatch.hosts.audit.printed import Printed, Unknown

CPU = "/sys/devices/system/cpu/"
Convert = Callable[[str], Any]


def file(path: str, convert: Convert = str) -> Source:
    """Return the source of what a file's text says."""
    return Source(lambda host: convert(host.text(path)), (path,))


def numbered(pattern: str, convert: Convert = str) -> Source:
    """Return the source of {number: what its file says}; [0-9]* in the pattern is the number."""

    def read(host: Printed) -> dict[int, Any]:
        return {number: convert(text) for number, text in host.numbered(pattern).items()}

    return Source(read, (pattern,))


def first(pattern: str, convert: Convert = str) -> Source:
    """Return the source of what the file of the lowest number says."""
    return Source(lambda host: convert(next(iter(host.numbered(pattern).values()))), (pattern,))


def lscpu(field: str, convert: Convert = str) -> Source:
    """Return the source of what a field of lscpu(1) says."""

    def read(host: Printed) -> Any:
        if field not in host.lscpu:
            raise Unknown(f"lscpu does not name its {field}")
        return convert(host.lscpu[field])

    return Source(read)
