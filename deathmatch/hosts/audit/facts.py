"""What an audit knows of a testbed: its hosts and links, and what the load asks of them.

Each fact is defined once, in `machine_facts`, `network_facts` and `limit_facts`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields

from deathmatch.hosts.audit.fact import Part, fact, facts, read
from deathmatch.hosts.audit.limit_facts import Limits
from deathmatch.hosts.audit.machine_facts import Clock, Load, Memory, Processor
from deathmatch.hosts.audit.network_facts import Interface, Link
from deathmatch.hosts.audit.printed import Printed, PrintedLink, Raw
from deathmatch.hosts.audit.sources import file

SERVER = "server"


def _system(text: str) -> str:
    return re.search(r'^PRETTY_NAME="?([^"\n]*)', text, re.MULTILINE)[1]


@dataclass(frozen=True, kw_only=True)
class Host(Part):
    """All that is known of one host."""

    kernel: str | None = fact(file("/proc/sys/kernel/osrelease"), "kernel")
    system: str | None = fact(file("/etc/os-release", _system), "system")
    processor: Processor
    memory: Memory
    clock: Clock
    load: Load
    interface: Interface
    limits: Limits

    @property
    def parts(self) -> dict[str, Part]:
        """Its parts by their names."""
        return {name: getattr(self, name) for name in PARTS}


PARTS: Mapping[str, type[Part]] = {
    field.name: field.type for field in fields(Host) if isinstance(field.type, type)
    and issubclass(field.type, Part)
}  # fmt: skip


def patterns(whole: bool) -> list[str]:
    """Return the files that the probe must print: all, or those that change between two trials."""
    definitions = [definition for part in (Host, *PARTS.values()) for _, definition in facts(part)]
    return sorted({
        file for definition in definitions if whole or definition.changing
        for file in definition.source.files
    })  # fmt: skip


def host(raw: Raw) -> Host:
    """Return what is known of a host, from its probe's JSON."""
    printed = Printed(raw)
    return read(Host, printed, **{name: read(part, printed) for name, part in PARTS.items()})


def load(raw: Raw) -> Load:
    """Return what ran in the probe's window, from its JSON."""
    return read(Load, Printed(raw))


def link(raw: Raw) -> Link:
    """Return what is known of a link, from the JSON of `link_probe call`."""
    return read(Link, PrintedLink(raw))


@dataclass(frozen=True)
class Demand:
    """What a load asks of its hosts at the least, and what the worst server makes of it.

    Connections that are open at once count on both sides; a connection a second takes a port.
    """

    connections_held: int = 0
    connections_worst: int = 0
    connections_per_s: float = 0
    requests_per_s: float = 0
    duration_s: float = 0


@dataclass(frozen=True)
class Audit:
    """A testbed as it was: its hosts by name, links by the client's, used CPUs by the host's.

    `separate` says whether its hosts are machines of their own.
    """

    testbed: str
    separate: bool
    hosts: dict[str, Host]
    links: dict[str, Link]
    cpus: dict[str, list[int]]
    demand: Demand
