"""A testbed's hosts, ready for a trial, with the settings of its file."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from deathmatch.errors import UserError
from deathmatch.hosts import hardware, memory, network_settings
from deathmatch.hosts.host import Connected, Host, dial
from deathmatch.hosts.memory import Memory
from deathmatch.plan import testbed as plan
from deathmatch.plan.server import Server
from deathmatch.plan.spec import Level

SERVER = "server"


@dataclass(frozen=True)
class Command:
    """The command that starts a server on a host: its words, environment and folder there."""

    words: list[str]
    environment: dict[str, str]
    folder: Path


class Installation(Protocol):
    """The project's files on a host; `builds.clone` and `builds.copy` implement it."""

    def built(self, server: Server) -> dict:
        """Return the record of the server's build there, building it first if that is due.

        As `server_build.built`.
        """

    def command(self, server: Server, values: Mapping[str, Level]) -> Command:
        """Return the command that starts a built server, with `values` for its placeholders."""

    def located(self, words: Sequence[str]) -> list[str]:
        """Return a load generator's command, its first word the program's path on the host.

        Paths of the project in the other words become paths of the installation.
        """

    def clients(self, names: Sequence[str], where: str) -> dict[str, str]:
        """Build and check load generators there; return {name: version}.

        `where` names what needs them. Starts processes. Raises UserError if one is missing or
        cannot run.
        """

    def harness(self) -> dict[str, str]:
        """Return `toolchain.harness` there."""


Install = Callable[[Host, plan.Side], Installation]
"""Installs the project on a host, given its side in the testbed's file: `builds.clone.on`."""


@dataclass(frozen=True)
class Testbed:
    """The hosts of a trial; `link` is the server's interface.

    `installations` are the project's installations by the hosts' names; {} if no trial will run
    there. With `separate`, each host is a machine of its own, with its own clocks.
    """

    # pytest would take it for a test.
    __test__ = False

    spec: plan.Testbed
    server: Host
    clients: tuple[Host, ...]
    link: str
    installations: Mapping[str, Installation]
    separate: bool = False
    opened_us: int = 0
    """How long it took to open the hosts and to apply the testbed's settings."""

    @property
    def address(self) -> str:
        """The server's address under test."""
        return self.spec.server.host_address

    @property
    def hosts(self) -> tuple[Host, ...]:
        """All hosts, the server's first."""
        return (self.server, *self.clients)

    def side(self, name: str) -> plan.Side:
        """Return a host's side in the testbed's file."""
        sides = zip(self.spec.client_names, self.spec.client_sides)
        return self.spec.server if name == SERVER else dict(sides)[name]

    def cpus(self, on_all: bool = False) -> dict[str, list[int]]:
        """Return the CPU numbers of each host, by name.

        With `on_all` the server has those of `cpus_all`. Raises UserError if a host lacks one.
        """
        written = {host.name: self.side(host.name).cpus for host in self.hosts}
        if on_all and self.spec.server.cpus_all:
            written[SERVER] = self.spec.server.cpus_all
        return {host.name: cpus(written[host.name], host.affinity()) for host in self.hosts}

    def limit_memory(self) -> Memory:
        """Limit the server's memory as its side says."""
        return memory.apply(self.server, self.spec.server)

    def harness(self) -> dict[str, str]:
        """Return the tools of trials here: the clients' load generators, the server's kernel."""
        of_server, of_client = (
            self.installations[host.name].harness() for host in (self.server, self.clients[0])
        )
        return of_client | {"kernel": of_server["kernel"]}

    def dial(self, address: str, port: int, patience_s: float) -> Connected:
        """Open a TCP connection as a client does, for a check.

        On one machine it is opened from this process, in the server's network, which saves a
        message to an agent for each call.
        """
        return (self.clients[0].connect if self.separate else dial)(address, port, patience_s)

    def raise_descriptors(self) -> int:
        """Raise the limit of open files on each host as the testbed says; return the lowest."""
        return min(host.raise_descriptors(self.spec.descriptors) for host in self.hosts)

    def end(self) -> None:
        """End all programs on the hosts, and restore the hosts' settings."""
        for host in self.hosts:
            host.close()


def together(tasks: Iterable[Callable[[], Any]]) -> list:
    """Call these functions at the same time; return their results.

    If one fails, its error is raised, and hosts that the others opened are closed.
    """
    tasks = list(tasks)
    with ThreadPoolExecutor(len(tasks)) as pool:
        futures = [pool.submit(task) for task in tasks]
    failed = [error for future in futures if (error := future.exception())]
    if failed:
        for future in futures:
            if future.exception() is None and isinstance(future.result(), Host):
                future.result().close()
        raise failed[0]
    return [future.result() for future in futures]


def prepared(
    spec: plan.Testbed, hosts: Sequence[Host], link: str,
    server_sysctl: Mapping[str, str | int], install: Install | None, *, separate: bool,
    began_ns: int,
) -> Testbed:  # fmt: skip
    """Apply the testbed's settings to these hosts, the server's first; return the testbed.

    `server_sysctl` overrides the testbed's; `install` returns each host's installation; `began_ns`
    is when the opening of hosts began, on this machine's monotonic clock. Raises UserError if a
    host refuses a setting.
    """
    sides = dict(zip(hosts, (spec.server, *spec.client_sides)))
    for host, side in sides.items():
        host.set_sysctls(side.sysctl | (server_sysctl if host.name == SERVER else {}))
        if spec.congestion_control:
            network_settings.set_congestion_control(host, spec.congestion_control)
        if side.governor:
            host.set_governor(side.governor)
    installed = together(partial(install, *item) for item in sides.items()) if install else []
    installations = {host.name: installation for host, installation in zip(hosts, installed)}
    opened_us = (time.monotonic_ns() - began_ns) // 1000
    return Testbed(spec, hosts[0], tuple(hosts[1:]), link, installations, separate, opened_us)


def cpus(which: str, available: Sequence[int]) -> list[int]:
    """Return the CPU numbers of a testbed's `cpus` on a machine with `available`.

    "last" is the last quarter, at least one CPU; "first" the others (if there is only one CPU, that
    one); "most" is "first" if that has several, else all; "all" is all; anything else is a list as
    in taskset(1), such as "0-3,6". Raises UserError if the machine lacks one of them.
    """
    last = available[-max(1, len(available) // 4) :]
    if which == "all":
        return available
    if which == "last":
        return last
    first = [cpu for cpu in available if cpu not in last] or available
    if which == "first":
        return first
    if which == "most":
        return first if len(first) > 1 else available
    chosen = hardware.cpu_numbers(which)
    absent = sorted(set(chosen) - set(available))
    if absent:
        raise UserError(
            f"this machine has no CPU {absent[0]}",
            where=f"testbed, cpus = {which!r}",
            remedy=f'available: {available}; or write "first", "last", "most" or "all"',
        )
    return sorted(chosen)


def shared_note(cpus: Mapping[str, Sequence[int]]) -> str:
    """Return the note about a CPU that server and clients share; "" if there is none.

    `cpus` are those of the hosts of one machine, the server's under "server".
    """
    of_clients = {cpu for name, own in cpus.items() if name != SERVER for cpu in own}
    shared = sorted({*cpus[SERVER]} & of_clients)
    if not shared:
        return ""
    which = f"CPU {shared[0]}" if len(shared) == 1 else f"CPUs {', '.join(map(str, shared))}"
    return f"client and server share {which}: each takes from the other, and rates are of both"
