"""A testbed's hosts, ready for a trial: which they are, and what its file means on them."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from deathmatch.errors import UserError
from deathmatch.hosts import hardware, memory, network_settings, throttle
from deathmatch.hosts.host import Connected, Host, dial
from deathmatch.hosts.memory import Memory
from deathmatch.hosts.throttle import Throttle
from deathmatch.plan import testbed as plan
from deathmatch.plan.server import Server
from deathmatch.plan.spec import Level

SERVER = "server"


@dataclass(frozen=True)
class Command:
    """How a server is started on a host: words, environment and folder, as the host has them."""

    words: list[str]
    environment: dict[str, str]
    folder: Path


class Installation(Protocol):
    """The project's files on a host, as `builds.clone` and `builds.copy` implement it."""

    def built(self, server: Server) -> dict:
        """Return the record of the server's build there, building it first if that is due.

        As `server_build.built`.
        """

    def command(self, server: Server, values: Mapping[str, Level]) -> Command:
        """Return how a built server is started, `values` filling its placeholders."""

    def located(self, words: Sequence[str]) -> list[str]:
        """Return a load generator's command with its first word as the host finds the program.

        Another word that names a file of the project names the installation's.
        """

    def clients(self, names: Sequence[str], where: str) -> dict[str, str]:
        """Build and check load generators there; return {name: version line}.

        `where` says what needs them. Costs processes. Raises UserError if one is missing or cannot
        run.
        """

    def harness(self) -> dict[str, str]:
        """Return the tools that trials there run on: `toolchain.harness`."""


Install = Callable[[Host, plan.Side], Installation]
"""Brings the project to a host, whose side of the testbed's file is given: `builds.clone.on`."""


@dataclass(frozen=True)
class Testbed:
    """The hosts of a trial; `link` is the server's interface.

    `installations` has what each host has of the project, by the host's name; it is empty if no
    trial is to run there. With `separate`, each host is a machine of its own, with its own clocks.
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
    """How long it took to open the hosts and to set what the testbed says."""

    @property
    def address(self) -> str:
        """The server's address, for the clients."""
        return self.spec.server.host_address

    @property
    def hosts(self) -> tuple[Host, ...]:
        """All hosts, the server's first."""
        return (self.server, *self.clients)

    def side(self, name: str) -> plan.Side:
        """Return what the testbed's file says of the host of that name."""
        sides = zip(self.spec.client_names, self.spec.client_sides)
        return self.spec.server if name == SERVER else dict(sides)[name]

    def cpus(self, on_all: bool = False) -> dict[str, list[int]]:
        """Return the CPU numbers of each host, by name.

        `on_all` says whether the server is to have those of `cpus_all`. UserError if a host lacks
        one.
        """
        written = {host.name: self.side(host.name).cpus for host in self.hosts}
        if on_all and self.spec.server.cpus_all:
            written[SERVER] = self.spec.server.cpus_all
        return {host.name: cpus(written[host.name], host.affinity()) for host in self.hosts}

    def throttle(self, cpus: int) -> Throttle:
        """Throttle the server as its side says, on that many CPUs; UserError as in `throttle`."""
        return throttle.apply(self.server, self.spec.server, self.link, cpus)

    def limit_memory(self, throttled: Throttle | None = None) -> Memory:
        """Limit the server's memory as its side says; `throttled` is what holds for its CPU."""
        return memory.apply(self.server, self.spec.server, throttled and throttled.group)

    def harness(self) -> dict[str, str]:
        """Return what trials here run on: the clients' load generators, the server's kernel."""
        of_server, of_client = (
            self.installations[host.name].harness() for host in (self.server, self.clients[0])
        )
        return of_client | {"kernel": of_server["kernel"]}

    def dial(self, address: str, port: int, patience_s: float) -> Connected:
        """Open a TCP connection as a client does, for a check.

        On one machine from the server's network, where this process is: that saves a message to
        an agent for each call.
        """
        return (self.clients[0].connect if self.separate else dial)(address, port, patience_s)

    def raise_descriptors(self) -> int:
        """Raise the limit of open files on each host as the testbed says; return the lowest got."""
        return min(host.raise_descriptors(self.spec.descriptors) for host in self.hosts)

    def end(self) -> None:
        """End all that runs on the hosts; what was set there is as before."""
        for host in self.hosts:
            host.close()


def together(tasks: Iterable[Callable[[], Any]]) -> list:
    """Return what these functions return, called at the same time.

    If one fails, its error is raised, and the hosts that others opened are closed.
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
    """Return the testbed of these hosts, the server's first, with their settings in force.

    `server_sysctl` overrides the testbed's own; `install` is asked for each host's installation;
    `began_ns` is when the first host began to be opened, on this machine's monotonic clock.
    Raises UserError if a host refuses a setting.
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
    """Return the CPU numbers that a testbed's `cpus` means on a machine with `available`.

    "last" is the last quarter, at least one; "first" the others (all, if there is but one);
    "most" those of "first" if they are several, else all; "all" every one; anything else a list as
    taskset(1) writes it, such as "0-3,6". UserError if the machine lacks one of them.
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
    """Return the note about a CPU that server and clients share; empty if there is none.

    `cpus` are those of the hosts of one machine, the server's under "server".
    """
    of_clients = {cpu for name, own in cpus.items() if name != SERVER for cpu in own}
    shared = sorted({*cpus[SERVER]} & of_clients)
    if not shared:
        return ""
    which = f"CPU {shared[0]}" if len(shared) == 1 else f"CPUs {', '.join(map(str, shared))}"
    return f"client and server share {which}: each takes from the other, and rates are of both"
