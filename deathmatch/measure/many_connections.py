"""Many connections of a client's host: those of an overload, and idle ones during the load.

An overload that one process or address cannot hold is divided among several of a host. Idle
connections are a factor of an experiment: each has carried one request and sends no other.
"""

import ipaddress
import math
from collections.abc import Mapping
from dataclasses import dataclass

from deathmatch.builds import clients
from deathmatch.errors import UserError
from deathmatch.hosts.audit import OWN_DESCRIPTORS, open_at_most
from deathmatch.hosts.host import Host
from deathmatch.load import registry
from deathmatch.measure.context import PORT, Context

_PORTS = "net.ipv4.ip_local_port_range"
# Each waits on a socket for each of its connections; beyond, they only take time from each other.
MOST_PROCESSES = 32
# A server that checks every connection at each wait accepts 8,000 slowly.
PATIENCE_S = 60
CLOSE_S = 5


@dataclass(frozen=True)
class Placement:
    """Processes on each client's host, and their addresses; () if the kernel chooses one."""

    processes: int = 1
    sources: tuple[str, ...] = ()


@dataclass(frozen=True)
class Limits:
    """A host's limits: descriptors of a process, ports of an address; its addresses."""

    descriptors: int
    ports: int
    own: tuple[str, ...]
    spare: tuple[str, ...] = ()


def of_overload(
    context: Context, client: Host, load: Mapping, rate_rps: float, duration_s: float
) -> Placement:
    """Return the processes and addresses for a client's part of an overload.

    A load generator that cannot share a host has one process there, at the addresses of the
    testbed's file. Raises UserError that names the limit if the host cannot hold the connections.
    """
    usual = context.sources(client)
    if not context.generator.shares_host:
        return Placement(sources=usual)
    hosts = len(context.clients)
    most = math.ceil(open_at_most(load, rate_rps, duration_s) / hosts)
    opened = math.ceil(rate_rps / load["requests_per_connection"] * duration_s / hosts)
    side = context.bed.side(client.name)
    network = side.spare_sources
    limits = Limits(
        client.raise_descriptors(context.bed.spec.descriptors), ports(client),
        usual or (side.host_address,),
        tuple(map(str, ipaddress.ip_network(network).hosts())) if network else (),
    )  # fmt: skip
    chosen = placement(most, opened, limits)
    if isinstance(chosen, str):
        raise UserError(
            f"{rate_rps:,.0f} requests/s hold {most:,} connections open until they time out: "
            f"{chosen}",
            where=f"{context.trial.path}: not measured",
            remedy="raise the limit, give the client more `spare_sources` in "
            f"config/testbeds/{context.bed.spec.name}.toml, or lower `overload_shares`",
        )
    return chosen if len(chosen.sources) > len(limits.own) else Placement(chosen.processes, usual)


def ports(client: Host) -> int:
    """Return how many ports an address of a client's host has."""
    first, last = map(int, client.sysctls([_PORTS])[_PORTS].split())
    return last - first + 1


def placement(most_open: int, opened: int, limits: Limits) -> Placement | str:
    """Return the processes and addresses that a load needs, or why a host cannot hold it.

    At most `most_open` connections are open at a time, and `opened` in total. An abandoned one may
    keep its port for a minute, so addresses are chosen for all of them if the host has enough.
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
    return Placement(processes, addresses[:wanted])


def hold_idle(context: Context) -> str:
    """Open the idle connections, if there are any; return what went wrong, or "".

    Waits at most PATIENCE_S for each client. The processes that hold them are in
    `context.state.idle`; `finish` ends them. Raises UserError if their program cannot run.
    """
    if not context.idle_connections:
        return ""
    with context.times.of("idle_connections"):
        for client in context.clients:
            if problem := _hold(context, client):
                return problem
        established = context.established()
    enough = established >= context.idle_connections
    return "" if enough else f"the kernel has {established} established"


def _hold(context: Context, client: Host) -> str:
    """Open a client's part of the idle connections; return what went wrong, or ""."""
    holder, part = registry.holder(context.trial.experiment.client), context.part(client)
    connections = context.idle_connections
    words = holder.idle_command(
        context.address, PORT, context.spec["load"], connections, part, context.sources(client)
    )
    if words is None:
        return ""
    located = context.bed.installations[client.name].located(words)
    process = client.start(located, cpus=context.cpus[client.name], talk=True)
    line = process.receive(PATIENCE_S)
    answer = f"not in {PATIENCE_S} s" if line is None else line.strip()
    if answer == f"idle_connections: {part.share(connections)}":
        context.state.idle.append(process)
        return ""
    said = line is not None and not answer.startswith("idle_connections: ")
    if said and (status := process.wait(CLOSE_S)) in clients.NOT_RUN:
        raise clients.failure(registry.HOLDER, f"ended with exit status {status}", answer, "")
    process.kill()
    return answer
