"""Whether a testbed is fit to measure on: the state of its hosts compared with the load's demand.

A check is a function from an audit to findings; it finds nothing if a fact is unknown. Severities:
"refuse", the measurement would not measure what it is meant to; "warn", it would be biased; "note",
a difference that matters when machines are compared.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from deathmatch.checks.findings import Finding, sorted_findings
from deathmatch.errors import UserError, suggestions
from deathmatch.hosts import hardware, host_state
from deathmatch.hosts.host import GOVERNORS
from deathmatch.hosts.host_state import State
from deathmatch.hosts.testbed import SERVER, Testbed
from deathmatch.load import registry

MACHINE = "this machine"
"""The place in findings about the one machine that has all hosts of a testbed."""
# Beyond half of the CPUs, the other work determines the results.
REFUSED_BUSY = 0.5
WARNED_BUSY = 0.1
WARNED_STEAL = 0.01
# Descriptors that a runtime has open in addition to its connections: libraries, logs, threads.
OWN_DESCRIPTORS = 100
# How long the source port of a closed connection cannot be used again, also with tcp_tw_reuse.
TIME_WAIT_S, REUSE_S = 60, 1
# How long conntrack keeps a closed connection (nf_conntrack_tcp_timeout_time_wait).
TRACKED_S = 120
# The kernel's memory for both ends of an established connection.
CONNECTION_BYTES = 7_400
# Read in user space, without a system call (vdso(7)).
FAST_CLOCKS = {"tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "timebase"}


@dataclass(frozen=True)
class Demand:
    """What a load needs of its hosts; connections are counted at each end.

    `connections_worst` are open at a time if the server answers nothing.
    """

    connections_held: int = 0
    connections_worst: int = 0
    connections_per_s: float = 0
    duration_s: float = 0
    backlog: int = 0

    def opened(self, rest_s: float) -> float:
        """Return how many connections are opened within `rest_s`."""
        return self.connections_per_s * min(rest_s, self.duration_s)


@dataclass(frozen=True)
class Audit:
    """A testbed: the state of its hosts and the CPUs used on each, by name, and the demand.

    `separate`: each host is a machine of its own. `load` is the other load on each machine's CPUs
    (`host_state.load`), {} if it was not read.
    """

    testbed: str
    separate: bool
    hosts: dict[str, State]
    cpus: dict[str, list[int]]
    demand: Demand
    load: dict[str, dict[str, float]] = field(default_factory=dict)

    @property
    def file(self) -> str:
        """The testbed's file."""
        return f"config/testbeds/{self.testbed}.toml"

    @property
    def machines(self) -> dict[str, State]:
        """The state of each machine, by its name in findings."""
        return self.hosts if self.separate else {MACHINE: self.hosts[SERVER]}


def open_at_most(load: Mapping[str, Any], rate_rps: float, duration_s: float) -> int:
    """Return how many connections are open at a rate if nothing is answered, until the time-out.

    `load` opens one for every `requests_per_connection`.
    """
    per_s = rate_rps / load["requests_per_connection"]
    return round(per_s * min(duration_s, load["timeout_s"]))


def trial_demand(spec: Mapping[str, Any]) -> Demand:
    """Return the demand of a trial at its highest rate; `spec` is `Trial.spec()`.

    A load with `requests_per_connection` opens new connections all the time; one with `connections`
    or `interval_s` holds them. A trial without load needs nothing.
    """
    if "client" not in spec:
        return Demand()
    load, rate_rps = spec["load"], max(spec["rates_rps"])
    held, worst, per_s = spec["factors"].get(registry.IDLE_FACTOR, 0), 0, 0.0
    if "requests_per_connection" in load:
        per_s = rate_rps / load["requests_per_connection"]
        worst = open_at_most(load, rate_rps, spec["duration_s"])
    else:
        held += load.get("connections") or round(rate_rps * load.get("interval_s", 0))
    # If a kernel setting is a factor, the experiment measures queues that the kernel shortens.
    backlog = 0 if spec.get("sysctl") else spec["factors"].get("backlog", 0)
    return Demand(held, held + worst, per_s, spec["duration_s"], backlog)


def most(demands: Iterable[Demand]) -> Demand:
    """Return the highest value of each quantity."""
    demands = list(demands)
    return Demand(**{
        field.name: max((getattr(demand, field.name) for demand in demands), default=0)
        for field in fields(Demand)
    })  # fmt: skip


def read(
    bed: Testbed, cpus: Mapping[str, Sequence[int]], demand: Demand, window_s: float = 0
) -> Audit:
    """Return the audit of a testbed; it takes some ten milliseconds for each host.

    Other load is watched for `window_s`; with 0 it is not read.
    """
    states = {
        host.name: host_state.read(host, bed.side(host.name).host_address) for host in bed.hosts
    }
    used = {MACHINE: (bed.server, sorted({cpu for own in cpus.values() for cpu in own}))}
    if bed.separate:
        used = {host.name: (host, cpus[host.name]) for host in bed.hosts}
    load = host_state.load(used, window_s) if window_s else {}
    return Audit(bed.spec.name, bed.separate, states, dict(cpus), demand, load)


def other_load(audit: Audit) -> Iterator[Finding]:
    """Look for other work on the CPUs that server and client are to use."""
    for where, load in audit.load.items():
        if (busy := load["busy_share"]) > WARNED_BUSY:
            yield Finding(
                "other-load", "refuse" if busy > REFUSED_BUSY else "warn", where,
                f"the CPUs were {busy:.0%} busy before anything was measured: that lengthens the "
                "tail of latencies, and beyond half of the CPUs rates are its doing",
                "end what else runs, or wait; who it is: top -o %CPU",
            )  # fmt: skip


def stolen_time(audit: Audit) -> Iterator[Finding]:
    """Look for CPU time that the hypervisor gave to other guests."""
    for where, load in audit.load.items():
        if (stolen := load["steal_share"]) > WARNED_STEAL:
            text = f"{stolen:.1%} of the CPU time was stolen: servers stand still in that time"
            remedy = "use a dedicated host, or a quieter hour; repeat more trials"
            yield Finding("stolen-time", "warn", where, text, remedy)


def shared_cpus(audit: Audit) -> Iterator[Finding]:
    """Look for CPUs that the server and a client of the same machine both use."""
    for name, cpus in audit.cpus.items():
        both = sorted({*audit.cpus[SERVER]} & {*cpus})
        if both and name != SERVER and not audit.separate:
            yield Finding(
                "shared-cpus", "warn", MACHINE,
                f"server and {name} share CPU {', '.join(map(str, both))}: each one's work is in "
                "the other's latencies",
                "give them different `cpus`, or use a machine with more",
            )  # fmt: skip


def governor(audit: Audit) -> Iterator[Finding]:
    """Look for frequency governors that save power."""
    for where, state in audit.machines.items():
        if saving := {*(state["processor"]["governors"] or [])} - {"performance"}:
            yield Finding(
                "governor", "warn", where,
                f"governor {', '.join(sorted(saving))}: it lowers the CPU's frequency when that "
                "idles, and low rates are answered slower than high ones",
                f"echo performance | sudo tee {GOVERNORS}",
            )  # fmt: skip


def descriptors(audit: Audit) -> Iterator[Finding]:
    """Compare the limit of open files with the connections of a process."""
    held = audit.demand.connections_held + OWN_DESCRIPTORS
    worst = audit.demand.connections_worst + OWN_DESCRIPTORS
    for where, state in audit.hosts.items():
        limit = state["limits"]["descriptors"]
        if limit is not None and limit < worst:
            yield Finding(
                "descriptors", "refuse" if limit < held else "warn", where,
                f"a process may open {limit:,} files; {held:,} are needed, and {worst:,} where a "
                "server answers nothing",
                f"as root: prlimit --pid $$ --nofile={worst}, then run again from this shell; "
                f"for good: `* - nofile {worst}` in /etc/security/limits.conf",
            )  # fmt: skip


def ports(audit: Audit) -> Iterator[Finding]:
    """Compare the source ports of a client with the connections that it opens."""
    for where, state in audit.hosts.items():
        limits = state["limits"]
        first, last = limits["port_first"], limits["port_last"]
        free = last - first + 1 - limits["ports_reserved"]
        rest_s = REUSE_S if limits["port_reuse"] else TIME_WAIT_S
        wanted = round(audit.demand.connections_held + audit.demand.opened(rest_s))
        if where != SERVER and free < wanted:
            yield Finding(
                "ports", "refuse", where,
                f"{free:,} source ports ({first} to {last}), each free again {rest_s} s after its "
                f"connection was closed; {wanted:,} are needed to offer the rate",
                f"in {audit.file} under [client.sysctl]: "
                '"net.ipv4.ip_local_port_range" = "1024 65535" and "net.ipv4.tcp_tw_reuse" = 1; '
                "if that is too few, lower rates",
            )  # fmt: skip


def somaxconn(audit: Audit) -> Iterator[Finding]:
    """Compare the kernel's longest accept queue with the longest that a server asks for."""
    longest, wanted = audit.hosts[SERVER]["limits"]["somaxconn"], audit.demand.backlog
    if longest is not None and longest < wanted:
        yield Finding(
            "somaxconn", "warn", SERVER,
            f"net.core.somaxconn is {longest:,}: the kernel shortens a backlog of {wanted:,} to "
            "it, and does not tell the server",
            f'in {audit.file} under [server.sysctl]: "net.core.somaxconn" = {wanted}',
        )  # fmt: skip


def conntrack(audit: Audit) -> Iterator[Finding]:
    """Check whether the firewall tracks connections, and whether its table has room for them."""
    for where, state in audit.hosts.items():
        tracked = state["limits"]["connections_tracked"]
        room = state["limits"]["connections_trackable"]
        # Without firewall rules no connection is tracked, whatever the table's size.
        if tracked and room:
            demand = audit.demand
            wanted = round(tracked + demand.connections_held + demand.opened(TRACKED_S))
            yield Finding(
                "conntrack", "refuse" if wanted > room else "warn", where,
                f"the firewall follows {tracked:,} connections, at most {room:,}, and {wanted:,} "
                "are needed: that costs CPU time, and drops new connections once the table is full",
                "exempt the server's port: notrack in the raw table (nft(8)); or "
                f"sudo sysctl -w net.netfilter.nf_conntrack_max={2 * wanted}",
            )  # fmt: skip


def memory(audit: Audit) -> Iterator[Finding]:
    """Compare the memory available with what the kernel needs for the connections alone."""
    wanted = audit.demand.connections_held * CONNECTION_BYTES
    for where, state in audit.machines.items():
        free = state["memory"]["available_bytes"]
        if free is not None and free < wanted:
            yield Finding(
                "memory", "refuse", where,
                f"{free / 1e6:,.0f} MB are available, and the kernel needs {wanted / 1e6:,.0f} MB "
                "for the connections alone",
                "end what uses memory, or hold fewer connections",
            )  # fmt: skip


def clock(audit: Audit) -> Iterator[Finding]:
    """Look for a clock source that is not read in user space."""
    for where, state in audit.machines.items():
        source = state["clock"]["source"]
        if source and source not in FAST_CLOCKS:
            text = f"clock source {source}: each look at the clock costs a system call"
            yield Finding("clock", "warn", where, text, "boot with clocksource=tsc")


def link_down(audit: Audit) -> Iterator[Finding]:
    """Check that the interfaces with the testbed's addresses exist and have a carrier."""
    for where, state in audit.hosts.items():
        name = state["interface"]["name"]
        if name is None:
            remedy = "ip address add ADDRESS dev INTERFACE, or correct the testbed's `address`"
            text = "no interface has the testbed's address"
            yield Finding("link-down", "refuse", where, text, remedy)
        elif not state["interface"]["up"]:
            remedy = f"sudo ip link set {name} up"
            yield Finding("link-down", "refuse", where, f"{name} has no carrier", remedy)


def network_settings(audit: Audit) -> Iterator[Finding]:
    """Look for network settings that differ from those of other testbeds."""
    closed, server = round(audit.demand.opened(TIME_WAIT_S)), audit.hosts[SERVER]["limits"]
    for where, state in audit.hosts.items():
        part, limits = "server" if where == SERVER else "client", state["limits"]
        if (limits["time_wait_buckets"] or closed) < closed:
            yield Finding(
                "network-settings", "note", where,
                f"tcp_max_tw_buckets {limits['time_wait_buckets']:,}: of {closed:,} closed "
                "connections, the kernel forgets at once those beyond",
                f"in {audit.file} under [{part}.sysctl]: "
                f'"net.ipv4.tcp_max_tw_buckets" = {2 * closed}',
            )  # fmt: skip
        if (own := limits["congestion_control"]) != server["congestion_control"]:
            text = f"congestion control {own}, {server['congestion_control']} at the server"
            remedy = f"name in {audit.file} under congestion_control one that both kernels have"
            yield Finding("network-settings", "warn", where, text, remedy)
    if server["abort_on_overflow"]:
        text = "tcp_abort_on_overflow is on: a full accept queue resets connections"
        remedy = f'in {audit.file} under [server.sysctl]: "net.ipv4.tcp_abort_on_overflow" = 0'
        yield Finding("network-settings", "warn", SERVER, text, remedy)


CHECKS = (
    other_load, stolen_time, shared_cpus, governor, descriptors, ports, somaxconn, conntrack,
    memory, clock, link_down, network_settings,
)  # fmt: skip
NAMES = tuple(check.__name__.replace("_", "-") for check in CHECKS)
"""The names of all checks, for `--accept` and `accepts`."""


def findings(audit: Audit, accepted: Iterable[str] = ()) -> list[Finding]:
    """Return the findings of all checks, the worst first; accepted ones do not refuse a run."""
    found = itertools.chain.from_iterable(check(audit) for check in CHECKS)
    return sorted_findings(found, dict.fromkeys(accepted, "accepted"))


def check_accepts(names: Iterable[str], where: str) -> None:
    """Raise UserError if there is no check of a name."""
    for name in names:
        if name not in NAMES:
            raise UserError(
                f"the audit has no check {name!r}", where,
                suggestions(name, NAMES),
            )  # fmt: skip


def before_trial(
    bed: Testbed, cpus: Mapping[str, Sequence[int]], spec: Mapping[str, Any]
) -> dict[str, State]:
    """Return the states of a trial's hosts for its record; with separate machines, also these.

    Other load and stolen time are not checked. Raises UserError if a limit would distort the trial
    and the testbed does not accept it.
    """
    audit = read(bed, cpus, trial_demand(spec))
    if found := [one for one in findings(audit, bed.spec.accepts) if one.verdict == "refuse"]:
        names = ", ".join(sorted({f'"{one.check}"' for one in found}))
        told = [f"{one.check} ({one.where}): {one.text}\n    {one.remedy}" for one in found]
        raise UserError(
            "\n  ".join(["the audit refuses to measure:", *told]), f"testbed {audit.testbed}",
            f"fix it, or measure in spite of it: accepts = [{names}] in {audit.file}",
        )  # fmt: skip
    machines = {
        host.name: {"machine": hardware.describe(host.read)} for host in bed.hosts if bed.separate
    }
    return {name: machines.get(name, {}) | state for name, state in audit.hosts.items()}
