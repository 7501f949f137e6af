"""What the rules of the audit look at: each host, machine, client or link of a testbed.

Severities: "refuse", what would be measured is not what was meant; "warn", it is, but worse than it
could be, or biased; "note", a reader who compares machines must know. A rule reports nothing where
what it looks at is unknown.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from deathmatch.hosts.audit.facts import SERVER, Audit, Demand, Host, Interface, Link

MACHINE = "this machine"
"""The name of the host in a finding about the one machine that all of them are on."""


@dataclass(frozen=True)
class Side:
    """A host with the CPUs that are used there, and the audit that it is part of."""

    name: str
    host: Host
    cpus: list[int]
    audit: Audit

    @property
    def interface(self) -> Interface:
        """The interface under test."""
        return self.host.interface

    @property
    def link(self) -> Link:
        """The client's link to the server."""
        return self.audit.links[self.name]

    @property
    def demand(self) -> Demand:
        """What the load asks."""
        return self.audit.demand

    @property
    def server(self) -> "Side":
        """The server's side."""
        return next(side for name, side in hosts(self.audit) if name == SERVER)


Sides = Iterator[tuple[str, Side]]


def hosts(audit: Audit) -> Sides:
    """Return the scope of a rule that looks at each host."""
    return ((name, Side(name, host, audit.cpus[name], audit)) for name, host in audit.hosts.items())


def machines(audit: Audit) -> Sides:
    """Return the scope of a rule that looks at each machine once, which several hosts may be on."""
    if audit.separate:
        return hosts(audit)
    used = sorted({cpu for cpus in audit.cpus.values() for cpu in cpus})
    return iter([(MACHINE, Side(MACHINE, next(iter(audit.hosts.values())), used, audit))])


def server(audit: Audit) -> Sides:
    """Return the scope of a rule that looks at the server."""
    return ((name, side) for name, side in hosts(audit) if name == SERVER)


def clients(audit: Audit) -> Sides:
    """Return the scope of a rule that looks at each client."""
    return ((name, side) for name, side in hosts(audit) if name != SERVER)


def neighbours(audit: Audit) -> Sides:
    """Return the scope of a rule that looks at each client on the server's machine."""
    return iter(()) if audit.separate else ((MACHINE, side) for _, side in clients(audit))


def links(audit: Audit) -> Sides:
    """Return the scope of a rule that looks at each client whose link was measured."""
    return ((name, side) for name, side in clients(audit) if name in audit.links)
