"""The `netns` testbed: a server's host and a client's on one machine.

Called inside a sandbox (see `sandbox`), whose own network namespace becomes the server's; the
client gets a second one, joined to it by a veth pair. Both end with the sandbox.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from deathmatch.errors import UserError
from deathmatch.hosts import memory, throttle
from deathmatch.hosts.host import Host, Local, Namespace
from deathmatch.hosts.memory import Memory
from deathmatch.hosts.throttle import Throttle
from deathmatch.plan import testbed as plan

LINK = "server0"


@dataclass(frozen=True)
class Testbed:
    """The hosts of a trial; `address` is the server's, for the clients."""

    # pytest would take it for a test.
    __test__ = False

    server: Host
    clients: tuple[Namespace, ...]
    address: str

    def own_pids(self) -> set[int]:
        """Return the pids that the testbed itself keeps running: no leftover of a server."""
        return {client.keeper.pid for client in self.clients}

    def throttle(self, side: plan.Side, cpus: int) -> Throttle:
        """Throttle the server as its side says, on that many CPUs; UserError as in `throttle`."""
        return throttle.apply(side, LINK, cpus)

    def limit_memory(self, side: plan.Side, throttled: Throttle) -> Memory:
        """Limit the server's memory as its side says; `throttled` is what holds for its CPU."""
        return memory.apply(side, throttled.group)

    def end(self) -> None:
        """End what the testbed runs; its namespaces end with the sandbox."""
        for client in self.clients:
            client.keeper.kill()


def build(spec: plan.Testbed, server_sysctl: Mapping[str, str | int]) -> Testbed:
    """Make the client's namespace, the link, the addresses and both sides' sysctls.

    `server_sysctl` overrides the testbed's own. Some tens of milliseconds. Raises UserError if
    the kernel or iproute2 refuses any of it.
    """
    server, client = Local(), Namespace()
    # `ip netns` keeps its names in /run: a private one, gone with the sandbox.
    server.run("mount", "-t", "tmpfs", "tmpfs", "/run")
    server.run("ip", "netns", "add", client.name)
    server.run(
        "ip", "link", "add", LINK, "type", "veth", "peer", "client0", "netns", client.name
    )  # fmt: skip
    for host in (server, client):
        host.run("ip", "link", "set", "lo", "up")
    for host, side, link in ((server, spec.server, LINK), (client, spec.client, "client0")):
        host.run("ip", "address", "add", side.address, "dev", link)
        host.run("ip", "link", "set", link, "up")
    server.set_sysctls({**spec.server.sysctl, **server_sysctl})
    client.set_sysctls(spec.client.sysctl)
    keeper = client.start(["sleep", "infinity"])
    return Testbed(server, (Namespace(client.name, keeper),), address(spec))


def address(spec: plan.Testbed) -> str:
    """Return the server's address."""
    return spec.server.address.split("/")[0]


def cpus(which: str, available: list[int]) -> list[int]:
    """Return the CPU numbers that a testbed's `cpus` means on a machine with `available`.

    "last" is the last quarter, at least one; "first" the others (all, if there is but one);
    "all" every one; anything else a list as taskset(1) writes it, such as "0-3,6". UserError if
    the machine lacks one of them.
    """
    last = available[-max(1, len(available) // 4) :]
    if which == "all":
        return available
    if which == "last":
        return last
    if which == "first":
        return [cpu for cpu in available if cpu not in last] or available
    chosen = []
    for part in which.split(","):
        first, _, end = part.partition("-")
        chosen += range(int(first), int(end or first) + 1)
    absent = sorted(set(chosen) - set(available))
    if absent:
        raise UserError(
            f"this machine has no CPU {absent[0]}",
            where=f"testbed, cpus = {which!r}",
            remedy=f'available: {available}; or write "first", "last" or "all"',
        )
    return sorted(chosen)


def shared_note(cpus: Mapping[str, list[int]]) -> str:
    """Return what to say where "server" and "client" have a CPU in common; empty where not."""
    shared = sorted(set(cpus["server"]) & set(cpus["client"]))
    if not shared:
        return ""
    which = f"CPU {shared[0]}" if len(shared) == 1 else f"CPUs {', '.join(map(str, shared))}"
    return f"client and server share {which}: each takes from the other, and rates are of both"
