"""One life of many connections between two namespaces: what the kernel holds in each state.

Called in a sandbox; its end removes the namespaces, their settings and both ends: nothing
outside of them is set. What the machine's limits allow is asked for, and less is held if they do.
"""

import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from deathmatch.errors import UserError
from deathmatch.hosts import netns_testbed
from deathmatch.hosts.host import Host
from deathmatch.hosts.kernel import SYN_RECEIVED
from deathmatch.hosts.testbed import Testbed
from deathmatch.instruments.connections import end, kernel_memory
from deathmatch.instruments.connections.kernel_memory import Cache
from deathmatch.instruments.connections.states import (
    LISTEN,
    LIVES,
    REQUEST_BYTES,
    UNREAD_BYTES,
    State,
    Step,
)
from deathmatch.plan import testbed as plan
from deathmatch.plan.root import ROOT

PORT = 8080
PATIENCE_S = 600
# An address has 64,512 ports to a port of the server, but connect(2) tries all ports of one parity
# before the others: beyond a half, each costs milliseconds (__inet_hash_connect).
PORTS_EACH = 20_000
# Some of its descriptors a process needs itself.
SPARE_DESCRIPTORS = 128
SLABINFO = Path("/proc/slabinfo")
# For benchmarks of networks (RFC 2544): the clients, and addresses that nobody has.
CLIENTS, STRANGERS, NOBODY = "198.18.0.{}", "198.19.0.{}", "198.19.255.1"
NETWORK = "198.18.0.0/15"
# Freeing waits for all CPUs to have passed on (RCU): read again until it has ended.
SETTLE_S, SETTLE_TRIES, SETTLED = 0.4, 25, 0.005
# A share of the connections: fewer objects are what others on this machine took and gave.
LEAST_SHARE = 0.02
FEWER = "ask for fewer: --connections, --held"
WATCHED = ("TCP", "sock_inode_cache", "tw_sock_TCP", "request_sock_TCP")


def life(name: str, connections: int, spec: plan.Testbed) -> list[dict]:
    """Return what was read in each state of a life of `states.LIVES`, one dict a state.

    "objects": {cache: {"per_connection", "size_bytes", "share_bytes"}}, None where slabs may not be
    read (the two sizes are those of `kernel_memory.Cache`);
    "memory": {what of meminfo: bytes more than before}; "rss_bytes": of both ends, likewise;
    "tcp_pages": pages that the kernel counts for TCP, likewise; "held": {what: counted}.
    UserError if fewer come about than were asked for.
    """
    bed = netns_testbed.build(spec, _server_sysctls(connections))
    hosts = {"server": bed.server, "client": bed.clients[0]}
    try:
        hosts["client"].set_sysctls(_client_sysctls(connections))
        ends = {side: [End(host)] for side, host in hosts.items()}
        allowed = min(ask(first, "descriptors", [{}]) for first in ends.values())
        held = shares(connections, allowed - SPARE_DESCRIPTORS)
        for side, host in hosts.items():
            ends[side] += [End(host) for _ in held[1:]]
        tasks = _tasks(held, bed.address)
        _reach(bed, spec, [address for task in tasks for address in task["sources"]])
        take([LISTEN], ends, tasks)
        return [*_states(LIVES[name], ends, hosts, tasks)]
    finally:
        bed.end()


def shares(connections: int, most: int) -> list[int]:
    """Return how many connections each of the fewest processes holds, none more than `most`."""
    workers = -(-connections // most)
    return [connections // workers + (n < connections % workers) for n in range(workers)]


class End:
    """One end of some of the connections: the program `end` on a host."""

    def __init__(self, host: Host) -> None:
        words = [sys.executable, "-m", "deathmatch.instruments.connections.end"]
        self._process, self._host = host.start(words, talk=True, folder=ROOT), host

    def tell(self, verb: str, arguments: dict) -> None:
        """Tell it to do something."""
        self._process.send(json.dumps([verb, arguments]) + "\n")

    def answer(self) -> int:
        """Return its answer to what it was told; UserError if it failed."""
        line = (self._process.receive(PATIENCE_S) or "").strip()
        try:
            answer = json.loads(line)
        except ValueError:
            answer = {"failed": line or "no answer"}
        if "failed" in answer:
            raise UserError(answer["failed"], "connections", FEWER)
        return answer["done"]

    def rss_bytes(self) -> int:
        """Return its resident set."""
        return self._host.usage(self._process.pid)["rss_bytes"]


Ends = dict[str, list[End]]
"""The ends of all connections, by side: each end of one side has its peer on the other."""


def ask(ends: Sequence[End], verb: str, arguments: Sequence[dict]) -> int:
    """Tell each end to do something, all at a time; return the sum of their answers.

    UserError if one fails.
    """
    for process, own in zip(ends, arguments, strict=True):
        process.tell(verb, own)
    return sum([process.answer() for process in ends])


def _tasks(held: Sequence[int], address: str) -> list[dict]:
    """Return the arguments of each pair of ends: a port of the server and addresses of its own."""
    sources = _addresses(CLIENTS, held, PORTS_EACH)
    strangers = _addresses(STRANGERS, held, end.PORTS)
    return [
        {
            "address": address, "port": PORT + place, "nobody": NOBODY, "wait": False,
            "request": REQUEST_BYTES, "unread": UNREAD_BYTES, "connections": share,
            "sources": sources[place], "strangers": strangers[place],
        }
        for place, share in enumerate(held)
    ]  # fmt: skip


def _addresses(pattern: str, held: Sequence[int], ports: int) -> list[list[str]]:
    """Return addresses for the connections of each pair of ends, so many from one, none twice."""
    share = -(-max(held) // ports)
    names = [pattern.format(n + 1) for n in range(share * len(held))]
    return [names[n * share : (n + 1) * share] for n in range(len(held))]


def _reach(bed: Testbed, spec: plan.Testbed, sources: Sequence[str]) -> None:
    """Give the client these addresses.

    The server's host sends all of their network to the client's, which drops what is not its own.
    """
    client = bed.clients[0]
    for address in sources:
        client.run("ip", "address", "add", f"{address}/32", "dev", "lo")
    bed.server.run("ip", "route", "add", NETWORK, "via", spec.client.address.split("/")[0])
    # What is sent to nobody goes to the server's host, which has no way on.
    client.run("ip", "route", "add", f"{NOBODY}/32", "via", bed.address)


def _server_sysctls(connections: int) -> dict[str, int]:
    return {
        "net.core.somaxconn": connections + 1,
        # A quarter of it is kept free where no cookies are sent (tcp_conn_request).
        "net.ipv4.tcp_max_syn_backlog": 2 * connections,
        "net.ipv4.tcp_syncookies": 0,
        # The first, the third, … the 255th second: none is given up meanwhile.
        "net.ipv4.tcp_synack_retries": 8,
        "net.ipv4.conf.all.forwarding": 0,
    }


def _client_sysctls(connections: int) -> dict[str, int]:
    return {
        # A SYN without an answer is given up after everything has been read.
        "net.ipv4.tcp_syn_retries": 127,
        # Who closes first has the sockets in TIME_WAIT.
        "net.ipv4.tcp_max_tw_buckets": 2 * connections,
    }


# Arguments of steps that a verb takes under another name.
_NAMES = {"strangers": "sources", "nobody": "address", "request": "size", "unread": "size"}


def _states(
    lived: tuple[State, ...], ends: Ends, hosts: dict[str, Host], tasks: list[dict]
) -> Iterator[dict]:
    connections = sum(task["connections"] for task in tasks)
    before = settle(hosts, ends, connections)
    for state in lived:
        take(state.steps, ends, tasks)
        held = wait_for(hosts, state, ends, tasks)
        after = settle(hosts, ends, connections)
        yield {
            "state": state.name, "connections": connections, "processes": len(tasks), "held": held,
            **difference(before, after, connections),
        }  # fmt: skip


def take(steps: Sequence[Step], ends: Ends, tasks: list[dict]) -> None:
    """Take steps; `tasks` are the arguments of each pair of ends."""
    for step in steps:
        given = [{_NAMES.get(name, name): task[name] for name in step.arguments} for task in tasks]
        ask(ends[step.end], step.verb, given)


def counts(hosts: dict[str, Host]) -> dict[str, int]:
    """Return the kernel's number of TCP sockets in each state, by end."""
    sockets = {}
    for side, host in hosts.items():
        read = host.counters()
        sockets[f"{side}_established"] = read["snmp"]["Tcp CurrEstab"]
        sockets[f"{side}_waiting"] = read["sockstat"]["TCP tw"]
        sockets[f"{side}_sockets"] = read["sockstat"]["TCP inuse"]
    return sockets


def wait_for(hosts: dict[str, Host], state: State, ends: Ends, tasks: list[dict]) -> dict[str, int]:
    """Return what the kernel counts once it is what the state holds; UserError if it never is.

    The steps of a state that may be taken `again` are repeated meanwhile.
    """
    connections = sum(task["connections"] for task in tasks)
    counted: dict[str, int] = {}
    for _ in range(SETTLE_TRIES):
        counted = counts(hosts)
        if "server_syn_received" in state.held:
            counted["server_syn_received"] = sum(
                hosts["server"].count(SYN_RECEIVED, task["port"]) for task in tasks
            )
        if all(counted[name] >= share * connections for name, share in state.held.items()):
            return counted
        time.sleep(SETTLE_S)
        if state.again:
            take(state.steps, ends, tasks)
    said = ", ".join(f"{name} {counted[name]}" for name in state.held)
    raise UserError(
        f"of {connections} connections the kernel counts {said}", f"state {state.name}",
        FEWER,
    )  # fmt: skip


def reading(hosts: dict[str, Host], ends: Ends) -> dict:
    """Return what the kernel and both ends hold now; slabs None where they may not be read."""
    server = hosts["server"]
    return {
        "caches": read_caches(server),
        "memory": kernel_memory.meminfo(server.read("/proc/meminfo")),
        "rss_bytes": sum(process.rss_bytes() for side in ends.values() for process in side),
        "tcp_pages": server.counters()["sockstat"]["TCP mem"],
    }


def read_caches(host: Host) -> dict[str, Cache] | None:
    """Return the kernel's caches, None for who may not read them."""
    try:
        return kernel_memory.caches(host.read(str(SLABINFO)))
    except PermissionError:
        return None


def settle(hosts: dict[str, Host], ends: Ends, connections: int) -> dict:
    """Read until WATCHED stay as they are, or SETTLE_TRIES times; return the last reading."""
    last = reading(hosts, ends)
    for _ in range(SETTLE_TRIES):
        time.sleep(SETTLE_S)
        now = reading(hosts, ends)
        if now["caches"] is None or still(last["caches"], now["caches"], connections):
            return now
        last = now
    return last


def still(before: dict[str, Cache], after: dict[str, Cache], connections: int) -> bool:
    """Return whether the caches of sockets changed by no more than SETTLED of the connections."""
    grown = kernel_memory.gained(before, after)
    return all(abs(grown.get(name, 0)) <= SETTLED * connections for name in WATCHED)


def difference(before: dict, after: dict, connections: int) -> dict:
    """Return what was gained between two readings; objects per connection, the rest in all."""
    objects = None
    if before["caches"] is not None:
        grown = kernel_memory.gained(before["caches"], after["caches"])
        objects = {
            name: {
                "per_connection": round(count / connections, 4),
                "size_bytes": after["caches"][name].size,
                "share_bytes": round(after["caches"][name].share, 1),
            }
            for name, count in grown.items()
            # The use by other programs of this machine is small compared with these connections.
            if abs(count) >= LEAST_SHARE * connections
        }
    return {
        "objects": objects,
        "memory": {name: after["memory"][name] - value for name, value in before["memory"].items()},
        "rss_bytes": after["rss_bytes"] - before["rss_bytes"],
        "tcp_pages": after["tcp_pages"] - before["tcp_pages"],
    }
