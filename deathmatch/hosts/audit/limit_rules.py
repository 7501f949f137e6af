"""Rules about limits: whether what a load asks of its hosts can be had there."""

from collections.abc import Iterator

from deathmatch.checks.rule import Finding, Rules
from deathmatch.hosts.audit.facts import SERVER
from deathmatch.hosts.audit.rule import Side, clients, hosts, machines

# Descriptors that a runtime has open in addition to its connections: libraries, logs, threads.
OWN_DESCRIPTORS = 100
TIME_WAIT_S = 60
# With tcp_tw_reuse (ip-sysctl.rst).
REUSE_S = 1
# How long conntrack remembers a closed connection (nf_conntrack_tcp_timeout_time_wait).
TRACKED_S = 120
# Both ends of an established connection, in the kernel.
CONNECTION_BYTES = 7_400

LIMITS = Rules(scope=hosts)


def _descriptors(side: Side, above: int, wanted: int) -> Iterator[Finding]:
    limit = side.host.limits.descriptors
    if limit is not None and above <= limit < wanted:
        yield Finding(
            f"a process may open {limit:,} files, {wanted:,} are needed",
            remedy=f"as root: prlimit --pid $$ --nofile={wanted}, then run again from this shell; "
            f"for good: `* - nofile {wanted}` in /etc/security/limits.conf",
        )


def _least(side: Side) -> int:
    return side.demand.connections_held + OWN_DESCRIPTORS


def _opened(side: Side, rest_s: float) -> float:
    """Return how many connections are opened within a time in which closed ones rest."""
    return side.demand.connections_per_s * min(rest_s, side.demand.duration_s)


@LIMITS.add("descriptors-too-few", "refuse", "getrlimit(2), RLIMIT_NOFILE")
def descriptors_too_few(side: Side) -> Iterator[Finding]:
    """A process cannot have the connections open that the experiment holds: it would measure the
    limit.
    """
    return _descriptors(side, 0, _least(side))


@LIMITS.add("descriptors-short", "warn", "getrlimit(2), RLIMIT_NOFILE")
def descriptors_short(side: Side) -> Iterator[Finding]:
    """If a server answers nothing, connections pile up until they time out; past the limit client
    or server fails otherwise than it would.
    """
    worst = side.demand.connections_worst + OWN_DESCRIPTORS
    return _descriptors(side, _least(side), worst)


@LIMITS.add(
    "ports-too-few", "refuse", "kernel documentation, networking/ip-sysctl.rst; tcp(7)",
    scope=clients,
)  # fmt: skip
def ports_too_few(side: Side) -> Iterator[Finding]:
    """A connection needs a source port, which rests for a minute after it was closed, or a second
    with tcp_tw_reuse: without a free one the client cannot offer the rate.
    """
    limits = side.host.limits
    rest_s = REUSE_S if limits.port_reuse else TIME_WAIT_S
    wanted = round(side.demand.connections_held + _opened(side, rest_s))
    if limits.ports is not None and limits.ports < wanted:
        reuse = "with" if limits.port_reuse else "without"
        yield Finding(
            f"{limits.ports:,} source ports ({limits.port_first} to {limits.port_last}), "
            f"{reuse} reuse after {REUSE_S} s; {wanted:,} are needed",
            remedy=f"in config/testbeds/{side.audit.testbed}.toml under [client.sysctl]: "
            '"net.ipv4.ip_local_port_range" = "1024 65535" and "net.ipv4.tcp_tw_reuse" = 1; '
            "if that is too few, lower rates",
        )


@LIMITS.add("conntrack-full", "refuse", "kernel documentation, networking/nf_conntrack-sysctl.rst")
def conntrack_full(side: Side) -> Iterator[Finding]:
    """The firewall follows every connection and drops packets of new ones once its table is
    full.
    """
    tracked, most = side.host.limits.connections_tracked, side.host.limits.connections_trackable
    opened = _opened(side, TRACKED_S)
    wanted = round((tracked or 0) + side.demand.connections_held + opened)
    # Without rules of a firewall none is tracked, whatever the table's size.
    if tracked and most and wanted > most:
        yield Finding(
            f"{tracked:,} connections are tracked, at most {most:,}; {wanted:,} would be",
            remedy=f"sudo sysctl -w net.netfilter.nf_conntrack_max={2 * wanted}",
        )


@LIMITS.add(
    "conntrack-on", "warn", "kernel documentation, networking/nf_conntrack-sysctl.rst",
    "exempt the server's port: notrack in the raw table (nft(8)), or no firewall there",
)  # fmt: skip
def conntrack_on(side: Side) -> Iterator[str]:
    """The firewall follows every connection: that takes CPU time of each packet."""
    if tracked := side.host.limits.connections_tracked:
        yield f"{tracked:,} connections are tracked"


@LIMITS.add(
    "time-wait-short", "note",
    "kernel documentation, networking/ip-sysctl.rst, tcp_max_tw_buckets",
)  # fmt: skip
def time_wait_short(side: Side) -> Iterator[Finding]:
    """Closed connections beyond this number are forgotten at once instead of resting a minute."""
    most, closed = side.host.limits.time_wait_buckets, round(_opened(side, TIME_WAIT_S))
    if most is not None and most < closed:
        part = "server" if side.name == SERVER else "client"
        yield Finding(
            f"tcp_max_tw_buckets {most:,}, {closed:,} connections rest at once",
            remedy=f"in config/testbeds/{side.audit.testbed}.toml under [{part}.sysctl]: "
            f'"net.ipv4.tcp_max_tw_buckets" = {2 * closed}',
        )


@LIMITS.add(
    "memory-too-little", "refuse", "tcp(7), tcp_mem; about 7.4 KB for both ends of a connection",
    "end what uses memory, or hold fewer connections", scope=machines,
)  # fmt: skip
def memory_too_little(side: Side) -> Iterator[str]:
    """The kernel needs this much for the connections alone; without it they are refused or
    something is killed.
    """
    wanted, free = side.demand.connections_held * CONNECTION_BYTES, side.host.memory.available_bytes
    if free is not None and free < wanted:
        yield f"{free / 1e6:,.0f} MB are available, {wanted / 1e6:,.0f} MB are needed"
