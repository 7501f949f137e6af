"""The `ssh` testbed: a server and clients that are separate machines, each with an agent."""

import time
from collections.abc import Mapping
from functools import partial

from deathmatch.agent.keeper import Settings
from deathmatch.errors import UserError
from deathmatch.hosts import host_state, opening
from deathmatch.hosts.host import Host
from deathmatch.hosts.testbed import SERVER, Install, Testbed, prepared, together
from deathmatch.plan import testbed as plan


def connect(
    spec: plan.Testbed, server_sysctl: Mapping[str, str | int], install: Install | None = None
) -> Testbed:
    """Return the hosts, ready for a trial: `testbed.prepared`.

    A first connection sets a host up, which takes minutes and is reported on standard error. Raises
    UserError for a mistake that the user can fix.
    """
    began_ns = time.monotonic_ns()
    sides = {SERVER: spec.server} | dict(zip(spec.client_names, spec.client_sides))
    hosts = together(partial(_open, *item) for item in sides.items())
    try:
        links = [
            _interface(host, side, f"config/testbeds/{spec.name}.toml, address of {host.name}")
            for host, side in zip(hosts, sides.values())
        ]
        return prepared(
            spec, hosts, links[0], server_sysctl, install, separate=True, began_ns=began_ns
        )
    except BaseException:
        for host in hosts:
            host.close()
        raise


def _open(name: str, side: plan.Side) -> Host:
    if side.ssh is None:
        return opening.through(name, [], Settings(folder=side.folder))
    return opening.ssh(side.ssh, name=name, folder=side.folder, python=side.python)


def _interface(host: Host, side: plan.Side, where: str) -> str:
    """Return the interface that has the host's address under test."""
    interfaces = host_state.by_address(host.run("ip", "-json", "-4", "address", "show"))
    if side.host_address not in interfaces:
        has = ", ".join(f"{address} on {link['ifname']}" for address, link in interfaces.items())
        raise UserError(
            f"that host has no address {side.host_address}", where, f"write one of these: {has}"
        )
    return interfaces[side.host_address]["ifname"]
