"""How many load generators of a host, at which of its addresses, hold the connections of a load.

In: the load, and the limits of the host. Out: a number of processes and their source addresses.
"""

import ipaddress
import math
from collections.abc import Mapping
from dataclasses import dataclass

from deathmatch.errors import UserError
from deathmatch.hosts.audit import OWN_DESCRIPTORS, open_at_most
from deathmatch.hosts.host import Host
from deathmatch.measure.context import Context

_PORTS = "net.ipv4.ip_local_port_range"
# Each waits on a socket for each of its connections; beyond, they only take time from each other.
MOST_PROCESSES = 32


@dataclass(frozen=True)
class Spread:
    """Processes on each client's host; addresses, none for the one that the kernel chooses."""

    processes: int = 1
    sources: tuple[str, ...] = ()


@dataclass(frozen=True)
class Limits:
    """What a host has: descriptors a process, ports an address, its addresses, spare ones."""

    descriptors: int
    ports: int
    own: tuple[str, ...]
    spare: tuple[str, ...] = ()


def of_overload(
    context: Context, client: Host, load: Mapping, rate_rps: float, duration_s: float
) -> Spread:
    """Return how a client's host offers its part of a load.

    A load generator that cannot share a host has one process there, at the addresses of the
    testbed's file. Raises UserError that names the limit if the host cannot hold the connections.
    """
    usual = context.sources(client)
    if not context.generator.spreads:
        return Spread(sources=usual)
    hosts = len(context.clients)
    most = math.ceil(open_at_most(load, rate_rps, duration_s) / hosts)
    opened = math.ceil(rate_rps / load["requests_per_connection"] * duration_s / hosts)
    side = context.bed.side(client.name)
    network = side.spare_sources
    first, last = map(int, client.sysctls([_PORTS])[_PORTS].split())
    limits = Limits(
        client.raise_descriptors(context.bed.spec.descriptors), last - first + 1,
        usual or (side.host_address,),
        tuple(map(str, ipaddress.ip_network(network).hosts())) if network else (),
    )  # fmt: skip
    chosen = spread(most, opened, limits)
    if isinstance(chosen, str):
        raise UserError(
            f"{rate_rps:,.0f} requests/s hold {most:,} connections open until they time out: "
            f"{chosen}",
            where=f"{context.trial.path}: not measured",
            remedy="raise the limit, give the client more `spare_sources` in "
            f"config/testbeds/{context.bed.spec.name}.toml, or lower `overload_shares`",
        )
    return chosen if len(chosen.sources) > len(limits.own) else Spread(chosen.processes, usual)


def spread(most_open: int, opened: int, limits: Limits) -> Spread | str:
    """Return how many processes and which addresses a load needs, or why it cannot be held.

    `most_open` connections are open at a time, and `opened` in all: one that was given up may keep
    its port for a minute, so that there are addresses for all of them where the host has them.
    """
    files = limits.descriptors - OWN_DESCRIPTORS
    processes = max(1, math.ceil(most_open / files))
    if processes > MOST_PROCESSES:
        return (
            f"a process may open {limits.descriptors:,} files, and more than {MOST_PROCESSES} "
            "processes are needed"
        )
    addresses = limits.own + limits.spare
    if most_open > limits.ports * len(addresses):
        return f"{len(addresses)} source addresses have {limits.ports:,} ports each"
    wanted = max(len(limits.own), math.ceil(opened / limits.ports))
    return Spread(processes, addresses[:wanted])
