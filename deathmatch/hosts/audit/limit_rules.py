"""Rules about limits: whether what a load asks of its hosts can be had there."""

from collections.abc import Iterator

from deathmatch.hosts.audit import facts
from deathmatch.hosts.audit.facts import SERVER
from deathmatch.hosts.audit.rule import Seen, machines, rule

# What a runtime has open besides its connections: libraries, logs, a few for each thread.
OWN_DESCRIPTORS = 100
TIME_WAIT_S = 60
# With tcp_tw_reuse (ip-sysctl.rst).
REUSE_S = 1
# How long conntrack remembers a closed connection (nf_conntrack_tcp_timeout_time_wait).
TRACKED_S = 120
# Both ends of an established connection, in the kernel.
CONNECTION_BYTES = 7_400


def _descriptors(audit: facts.Audit, above: int, wanted: int) -> Iterator[Seen]:
    for name, host in audit.hosts.items():
        got = host.limits.descriptors
        if got is not None and above <= got < wanted:
            read = f"a process may open {got:,} files, {wanted:,} are needed"
            mend = (
                f"as root: prlimit --pid $$ --nofile={wanted}, then run again from this shell; "
                f"for good: `* - nofile {wanted}` in /etc/security/limits.conf"
            )
            yield Seen(name, read, mend)


def _least(demand: facts.Demand) -> int:
    return demand.connections_held + OWN_DESCRIPTORS


@rule(
    "descriptors-too-few", "refuse",
    "A process cannot have the connections open that the experiment holds: it would measure the "
    "limit.",
    "getrlimit(2), RLIMIT_NOFILE",
)  # fmt: skip
def descriptors_too_few(audit: facts.Audit) -> Iterator[Seen]:
    """Look for limits below what is surely held."""
    return _descriptors(audit, 0, _least(audit.demand))


@rule(
    "descriptors-short", "warn",
    "If a server answers nothing, connections pile up until they time out; past the limit client "
    "or server fails otherwise than it would.",
    "getrlimit(2), RLIMIT_NOFILE",
)  # fmt: skip
def descriptors_short(audit: facts.Audit) -> Iterator[Seen]:
    """Look for limits below what a hung server makes of the load."""
    worst = audit.demand.connections_worst + OWN_DESCRIPTORS
    return _descriptors(audit, _least(audit.demand), worst)


@rule(
    "ports-too-few", "refuse",
    "A connection needs a source port, which rests for a minute after it was closed, or a second "
    "with tcp_tw_reuse: without a free one the client cannot offer the rate.",
    "kernel documentation, networking/ip-sysctl.rst; tcp(7)",
)  # fmt: skip
def ports_too_few(audit: facts.Audit) -> Iterator[Seen]:
    """Look for port ranges below what is offered."""
    demand = audit.demand
    for client in audit.clients:
        limits = audit.hosts[client].limits
        rest_s = REUSE_S if limits.port_reuse else TIME_WAIT_S
        opened = demand.connections_per_s * min(rest_s, demand.duration_s)
        wanted = round(demand.connections_held + opened)
        if limits.ports is not None and limits.ports < wanted:
            reuse = "with" if limits.port_reuse else "without"
            read = (
                f"{limits.ports:,} source ports ({limits.port_first} to {limits.port_last}), "
                f"{reuse} reuse after {REUSE_S} s; {wanted:,} are needed"
            )
            mend = (
                f"in config/testbeds/{audit.testbed}.toml under [client.sysctl]: "
                '"net.ipv4.ip_local_port_range" = "1024 65535" and "net.ipv4.tcp_tw_reuse" = 1; '
                "if that is too few, lower rates"
            )
            yield Seen(client, read, mend)


@rule(
    "conntrack-full", "refuse",
    "The firewall follows every connection and drops packets of new ones once its table is full.",
    "kernel documentation, networking/nf_conntrack-sysctl.rst",
)  # fmt: skip
def conntrack_full(audit: facts.Audit) -> Iterator[Seen]:
    """Look for tables that the load would fill."""
    demand = audit.demand
    opened = demand.connections_per_s * min(TRACKED_S, demand.duration_s)
    for name, host in audit.hosts.items():
        tracked, most = host.limits.connections_tracked, host.limits.connections_trackable
        wanted = round((tracked or 0) + demand.connections_held + opened)
        # Without rules of a firewall none is tracked, whatever the table's size.
        if tracked and most and wanted > most:
            read = f"{tracked:,} connections are tracked, at most {most:,}; {wanted:,} would be"
            yield Seen(name, read, f"sudo sysctl -w net.netfilter.nf_conntrack_max={2 * wanted}")


@rule(
    "conntrack-on", "warn",
    "The firewall follows every connection: that takes CPU time of each packet.",
    "kernel documentation, networking/nf_conntrack-sysctl.rst",
)  # fmt: skip
def conntrack_on(audit: facts.Audit) -> Iterator[Seen]:
    """Look for connections that are tracked."""
    for name, host in audit.hosts.items():
        if host.limits.connections_tracked:
            read = f"{host.limits.connections_tracked:,} connections are tracked"
            mend = (
                "exempt the server's port: notrack in the raw table (nft(8)), or no firewall there"
            )
            yield Seen(name, read, mend)


@rule(
    "time-wait-short", "note",
    "Closed connections beyond this number are forgotten at once instead of resting a minute.",
    "kernel documentation, networking/ip-sysctl.rst, tcp_max_tw_buckets",
)  # fmt: skip
def time_wait_short(audit: facts.Audit) -> Iterator[Seen]:
    """Look for too few places for closed connections."""
    demand = audit.demand
    closed = round(demand.connections_per_s * min(TIME_WAIT_S, demand.duration_s))
    for name, host in audit.hosts.items():
        if (most := host.limits.time_wait_buckets) is not None and most < closed:
            read = f"tcp_max_tw_buckets {most:,}, {closed:,} connections rest at once"
            part = "server" if name == SERVER else "client"
            mend = (
                f"in config/testbeds/{audit.testbed}.toml under [{part}.sysctl]: "
                f'"net.ipv4.tcp_max_tw_buckets" = {2 * closed}'
            )
            yield Seen(name, read, mend)


@rule(
    "memory-too-little", "refuse",
    "The kernel needs this much for the connections alone; without it they are refused or "
    "something is killed.",
    "tcp(7), tcp_mem; about 7.4 KB for both ends of a connection",
)  # fmt: skip
def memory_too_little(audit: facts.Audit) -> Iterator[Seen]:
    """Look for less memory than the connections take."""
    wanted = audit.demand.connections_held * CONNECTION_BYTES
    for name, host, _ in machines(audit):
        if (free := host.memory.available_bytes) is not None and free < wanted:
            read = f"{free / 1e6:,.0f} MB are available, {wanted / 1e6:,.0f} MB are needed"
            yield Seen(name, read, "end what uses memory, or hold fewer connections")


RULES = (
    descriptors_too_few, descriptors_short, ports_too_few, conntrack_full, conntrack_on,
    time_wait_short, memory_too_little,
)  # fmt: skip
