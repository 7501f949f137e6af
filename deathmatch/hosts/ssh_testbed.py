"""The `ssh` testbed: a server and clients that are machines of their own, each behind an agent."""

import json
from collections.abc import Callable, Mapping
from functools import partial

from deathmatch.agent.keeper import Settings
from deathmatch.errors import UserError
from deathmatch.hosts import opening
from deathmatch.hosts.host import Host
from deathmatch.hosts.installation import Install
from deathmatch.hosts.opening import say
from deathmatch.hosts.testbed import SERVER, Testbed, together
from deathmatch.plan import testbed as plan

GOVERNORS = "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor"


def connect(
    spec: plan.Testbed, server_sysctl: Mapping[str, str | int], install: Install | None = None,
    *, tell: Callable[[str], None] = say,
) -> Testbed:  # fmt: skip
    """Return the hosts, their settings in force; `install` is asked for each host's installation.

    `server_sysctl` overrides the testbed's own. A first connection sets a host up, which takes
    minutes and is told. Raises UserError where the user can mend it.
    """
    sides = {SERVER: spec.server} | dict(zip(spec.client_names, spec.client_sides))
    hosts = together(partial(_open, name, side, tell) for name, side in sides.items())
    try:
        links = {
            host.name: _interface(host, side, _where(spec, host.name))
            for host, side in zip(hosts, sides.values())
        }
        for host, side in zip(hosts, sides.values()):
            own = server_sysctl if host.name == SERVER else {}
            host.set_sysctls({**side.sysctl, **own})
            if side.governor:
                _govern(host, side.governor)
        installed = together(
            partial(install, host, side, tell)
            for host, side in zip(hosts, sides.values())
            if install
        )
        installations = {host.name: installation for host, installation in zip(hosts, installed)}
    except BaseException:
        for host in hosts:
            host.close()
        raise
    return Testbed(spec, hosts[0], tuple(hosts[1:]), links[SERVER], installations, separate=True)


def _open(name: str, side: plan.Side, tell: Callable[[str], None]) -> Host:
    if side.ssh is None:
        return opening.through(name, [], Settings(folder=side.folder), tell)
    return opening.ssh(side.ssh, name=name, folder=side.folder, python=side.python, tell=tell)


def _where(spec: plan.Testbed, name: str) -> str:
    return f"config/testbeds/{spec.name}.toml, address of {name}"


def _interface(host: Host, side: plan.Side, where: str) -> str:
    """Return the interface that has the host's address under test."""
    found = {
        one["local"]: link["ifname"]
        for link in json.loads(host.run("ip", "-json", "-4", "address", "show"))
        for one in link.get("addr_info", [])
    }
    if side.host_address not in found:
        has = ", ".join(f"{address} on {link}" for address, link in found.items())
        raise UserError(
            f"that host has no address {side.host_address}", where, f"write one of these: {has}"
        )
    return found[side.host_address]


def _govern(host: Host, governor: str) -> None:
    files = host.run("sh", "-c", f"ls {GOVERNORS} 2>/dev/null || true").split()
    found = {file: host.read(file).strip() for file in files}
    host.set_files({file: governor for file, value in found.items() if value != governor})
