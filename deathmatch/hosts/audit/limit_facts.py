"""Facts about how much the kernel lets a process and a namespace have."""

from dataclasses import dataclass

from deathmatch.hosts.audit.fact import Part, Source, fact
from deathmatch.hosts.audit.formats import cpu_list
from deathmatch.hosts.audit.printed import Printed
from deathmatch.hosts.audit.show import count, yes_or_no
from deathmatch.hosts.audit.sources import file

IPV4 = "/proc/sys/net/ipv4/"
PORT_RANGE, RESERVED = IPV4 + "ip_local_port_range", IPV4 + "ip_local_reserved_ports"
CONNTRACK = "/proc/sys/net/netfilter/nf_conntrack_"


def _port(place: int) -> Source:
    return file(PORT_RANGE, lambda text: int(text.split()[place]))


def _ports_reserved(host: Printed) -> int:
    lowest, highest = map(int, host.text(PORT_RANGE).split())
    return sum(lowest <= port <= highest for port in cpu_list(host.text(RESERVED)))


def _port_reuse(host: Printed) -> bool:
    # 2 is for the loopback only; without time stamps, old segments look like new ones.
    reuse, stamps = host.text(IPV4 + "tcp_tw_reuse"), host.text(IPV4 + "tcp_timestamps")
    return int(reuse) == 1 and int(stamps) != 0


@dataclass(frozen=True, kw_only=True)
class Limits(Part):
    """How much the kernel lets a process and a namespace have."""

    descriptors: int | None = fact(
        lambda host: host.raw["descriptors"][0], "open files of a process", count, changing=True
    )
    descriptors_hard: int | None = fact(lambda host: host.raw["descriptors"][1], changing=True)
    files_of_the_machine: int | None = fact(file("/proc/sys/fs/file-max", int), changing=True)
    port_first: int | None = fact(_port(0), "first source port", changing=True)
    port_last: int | None = fact(_port(1), "last source port", changing=True)
    ports_reserved: int | None = fact(
        Source(_ports_reserved, (PORT_RANGE, RESERVED)), changing=True
    )
    # Whether a port in TIME_WAIT may be used again after a second.
    port_reuse: bool | None = fact(
        Source(_port_reuse, (IPV4 + "tcp_tw_reuse", IPV4 + "tcp_timestamps")),
        "ports reused after 1 s", yes_or_no, changing=True,
    )  # fmt: skip
    time_wait_buckets: int | None = fact(file(IPV4 + "tcp_max_tw_buckets", int), changing=True)
    somaxconn: int | None = fact(file("/proc/sys/net/core/somaxconn", int), changing=True)
    connections_tracked: int | None = fact(
        file(CONNTRACK + "count", int), "connections tracked", count, changing=True
    )
    connections_trackable: int | None = fact(file(CONNTRACK + "max", int), changing=True)

    @property
    def ports(self) -> int | None:
        """How many source ports a connection to one address may choose from."""
        if self.port_first is None or self.port_last is None:
            return None
        return self.port_last - self.port_first + 1 - (self.ports_reserved or 0)
