"""What the kernel's memory holds, from /proc/slabinfo and /proc/meminfo, and how readings differ.

slabinfo(5), proc_meminfo(5). Only root may read the first. Both are of the whole machine: what
else runs there is in a difference too.
"""

import os
from dataclasses import dataclass

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
MEMINFO = ("MemFree", "MemAvailable", "Slab", "VmallocUsed", "Percpu", "PageTables")


@dataclass(frozen=True)
class Cache:
    """A cache of equal objects: the number in use, an object's size and share of a slab, in bytes.

    The kernel lets caches of like objects be one: it is then named after the first of them.
    """

    objects: int
    size: int
    share: float


def caches(slabinfo: str) -> dict[str, Cache]:
    """Return the caches by name from the text of /proc/slabinfo, version 2.1.

    An object's share of a slab is pages × page size / objects: what does not fill a slab is lost,
    so it is more than the object's own size. ValueError if the text is of another version.
    """
    first, _, *lines = slabinfo.splitlines()
    if first != "slabinfo - version: 2.1":
        raise ValueError(f"{first!r}, not version 2.1")
    by_name = {}
    for line in lines:
        name, active, _, size, per_slab, pages, *_ = line.split()
        share = int(pages) * PAGE_BYTES / int(per_slab)
        by_name[name] = Cache(int(active), int(size), share)
    return by_name


def meminfo(text: str) -> dict[str, int]:
    """Return MEMINFO in bytes from the text of /proc/meminfo; those that the kernel has."""
    lines = dict(line.split(":") for line in text.splitlines())
    return {name: int(lines[name].split()[0]) * 1024 for name in MEMINFO if name in lines}


def gained(before: dict[str, Cache], after: dict[str, Cache]) -> dict[str, int]:
    """Return by how many objects each cache has grown; those that did not change are left out."""
    none = Cache(0, 0, 0)
    grown = {name: cache.objects - before.get(name, none).objects for name, cache in after.items()}
    return {name: objects for name, objects in grown.items() if objects}
