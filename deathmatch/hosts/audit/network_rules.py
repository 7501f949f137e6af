"""Rules about the link under test and the interfaces at its ends."""

from collections.abc import Iterator

from deathmatch.checks.rule import Finding, Rules
from deathmatch.hosts.audit.rule import Side, clients, hosts, links, server
from deathmatch.hosts.audit.show import share

ETHERNET_MTU_BYTES = 1500
# A small request and its reply on a connection of their own, with the headers of some ten packets.
REQUEST_BYTES = 1000
WARNED_ROUND_TRIP_S = 0.001
WARNED_JITTER = 10
NOTED_LOSS = 0.001
# The disciplines of a network that somebody set up to be slow.
SHAPERS = {"netem", "tbf", "htb", "cake", "hfsc"}
# LRO joins what must not be forwarded, and is off for good reason; a veth pair hands on large
# packets whole, so that GRO has nothing to join.
LRO, GRO = "large-receive-offload", "generic-receive-offload"

LINKS = Rules(scope=links)
INTERFACES = Rules(scope=hosts)


@LINKS.add(
    "link-failed", "refuse", "config/testbeds/, key address",
    "see both ends: ip address, ip route get ADDRESS, and any firewall between",
)  # fmt: skip
def link_failed(side: Side) -> Iterator[str]:
    """The client could not exchange anything with the server over the link under test."""
    if side.link.round_trip_median_s is None:
        yield side.link.unknown.get("round_trip_median_s", "no reason given")


@INTERFACES.add("interface-down", "refuse", "ip-link(8)")
def interface_down(side: Side) -> Iterator[Finding]:
    """The interface with the testbed's address is absent or has no carrier."""
    device = side.interface
    if device.name is None:
        remedy = "ip address add ADDRESS dev INTERFACE, or correct the testbed's `address`"
        yield Finding(device.unknown.get("name", "no interface"), remedy=remedy)
    elif device.up is False:
        yield Finding(f"{device.name} is down", remedy=f"sudo ip link set {device.name} up")


@LINKS.add(
    "link-slow", "refuse", "about 1,000 bytes for a request with its connection",
    "take a faster link, or offer lower rates",
)  # fmt: skip
def link_slow(side: Side) -> Iterator[str]:
    """The link carries fewer bytes than the highest offered rate makes: the link would be
    measured.
    """
    wanted, seen = 8 * REQUEST_BYTES * side.demand.requests_per_s, side.link.bandwidth_bit_per_s
    if seen is not None and seen < wanted:
        yield f"{seen / 1e6:.3g} Mbit/s seen, {wanted / 1e6:.3g} needed"


@LINKS.add(
    "round-trip-long", "warn", "measured over one TCP connection",
    "put the hosts on one switch; tc qdisc show: is it delayed?",
)  # fmt: skip
def round_trip_long(side: Side) -> Iterator[str]:
    """Every connection and request waits for the link: latencies are mostly its own."""
    if (side.link.round_trip_median_s or 0) > WARNED_ROUND_TRIP_S:
        yield f"a round trip takes {1e3 * side.link.round_trip_median_s:.3g} ms"


@LINKS.add(
    "round-trip-jitter", "note", "measured over one TCP connection",
    "end other load and traffic; keep interrupts off busy CPUs",
)  # fmt: skip
def round_trip_jitter(side: Side) -> Iterator[str]:
    """Some round trips take much longer than most: the tail of latencies is partly the link's."""
    median_s, p99_s = side.link.round_trip_median_s, side.link.round_trip_p99_s
    if median_s and p99_s and p99_s > WARNED_JITTER * median_s:
        yield f"median {1e6 * median_s:.3g} us, 99th percentile {1e6 * p99_s:.3g} us"


@LINKS.add(
    "retransmissions", "note", "tcp(7), TCP_INFO",
    "see drops at both ends: ip -s link; and on the switch",
)  # fmt: skip
def retransmissions(side: Side) -> Iterator[str]:
    """Segments were lost, though only one connection was on the link."""
    link = side.link
    lost_bytes = (link.retransmitted_segments or 0) * (link.path_mtu_bytes or 0)
    if link.received_bytes and lost_bytes > NOTED_LOSS * link.received_bytes:
        part = share(lost_bytes / link.received_bytes)
        yield f"{link.retransmitted_segments:,} segments, {part} of the bytes, were sent again"


@INTERFACES.add("mtu-differs", "warn", "RFC 4821; tcp(7)", scope=clients)
def mtu_differs(side: Side) -> Iterator[Finding]:
    """The ends send packets of different size: cost per byte differs by direction, and a path that
    drops large packets silently looks like a server that hangs.
    """
    name, own, other = (
        side.interface.name,
        side.interface.mtu_bytes,
        side.server.interface.mtu_bytes,
    )
    if own and other and own != other:
        yield Finding(
            f"MTU {own} on {name}, {other} at the server",
            remedy=f"on one of them: sudo ip link set {name} mtu {other}",
        )


@INTERFACES.add("mtu-small", "warn", "ip-link(8)")
def mtu_small(side: Side) -> Iterator[Finding]:
    """Packets are smaller than on plain Ethernet: a reply takes more of them."""
    device = side.interface
    if (device.mtu_bytes or ETHERNET_MTU_BYTES) < ETHERNET_MTU_BYTES:
        remedy = f"sudo ip link set {device.name} mtu {ETHERNET_MTU_BYTES}"
        yield Finding(f"MTU {device.mtu_bytes} on {device.name}", remedy=remedy)


@LINKS.add("path-mtu-smaller", "warn", "ip(7), IP_MTU", "find the hop: tracepath ADDRESS")
def path_mtu_smaller(side: Side) -> Iterator[str]:
    """Something between the hosts carries smaller packets than both of them send."""
    path, ends = side.link.path_mtu_bytes, (
        side.interface.mtu_bytes, side.server.interface.mtu_bytes,
    )  # fmt: skip
    if path and all(ends) and path < min(ends):
        yield f"the path carries {path} bytes, both ends {min(ends)}"


@INTERFACES.add("offloads-off", "note", "ethtool(8)")
def offloads_off(side: Side) -> Iterator[Finding]:
    """The CPU does what the device, or the stack at once for many packets, could do."""
    spared = {LRO, GRO} if side.interface.kind == "veth" else {LRO}
    offloads = side.interface.offloads or {}
    off = [name for name, on in offloads.items() if not on and name not in spared]
    if off:
        words = " ".join(f"{name} on" for name in off)
        remedy = f"sudo ethtool -K {side.interface.name} {words}"
        yield Finding(f"off: {', '.join(off)}", remedy=remedy)


@INTERFACES.add("offloads-differ", "warn", "ethtool(8)", scope=clients)
def offloads_differ(side: Side) -> Iterator[Finding]:
    """One end does work that the other's device does for it: cost per packet differs by
    direction.
    """
    own, others = side.interface.offloads or {}, side.server.interface.offloads or {}
    differ = [name for name, on in others.items() if own.get(name, on) != on]
    if differ:
        words = " ".join(f"{name} {'on' if others[name] else 'off'}" for name in differ)
        remedy = f"sudo ethtool -K {side.interface.name} {words}"
        yield Finding(f"not as at the server: {', '.join(differ)}", remedy=remedy)


@INTERFACES.add("half-duplex", "warn", "ethtool(8)")
def half_duplex(side: Side) -> Iterator[Finding]:
    """The link sends or receives, never both: the ends' negotiation failed."""
    name = side.interface.name
    if side.interface.full_duplex is False:
        yield Finding(f"{name} is half duplex", remedy=f"sudo ethtool -s {name} autoneg on")


@INTERFACES.add("coalescing", "note", "ethtool(8), --coalesce")
def coalescing(side: Side) -> Iterator[Finding]:
    """The device holds back interrupts to join packets: each round trip waits for that."""
    held_s = side.interface.receive_coalescing_s or 0
    if side.interface.adaptive_coalescing or held_s > 0:
        how = "adaptive" if side.interface.adaptive_coalescing else f"{1e6 * held_s:.3g} us"
        remedy = f"sudo ethtool -C {side.interface.name} adaptive-rx off rx-usecs 0"
        yield Finding(f"receive coalescing: {how}", remedy=remedy)


@INTERFACES.add("shaped", "warn", "tc(8)")
def shaped(side: Side) -> Iterator[Finding]:
    """A queueing discipline delays or limits what the host sends; the testbed did not ask for
    it.
    """
    name, discipline = side.interface.name, side.interface.queue_discipline
    if discipline in SHAPERS:
        remedy = f"sudo tc qdisc delete dev {name} root"
        yield Finding(f"{name} has the discipline {discipline}", remedy=remedy)


@INTERFACES.add(
    "interrupts-on-server-cpus", "note", "kernel documentation, core-api/irq/irq-affinity.rst",
    scope=server,
)  # fmt: skip
def interrupts_on_server_cpus(side: Side) -> Iterator[Finding]:
    """The device's interrupts may take the server's CPUs: receive work comes on top of its own."""
    interrupts = side.interface.interrupts or {}
    spare = {*(side.host.processor.online or [])} - {*side.cpus}
    numbers = [number for number, cpus in interrupts.items() if {*side.cpus} & {*cpus}]
    if numbers and spare:
        files = f"/proc/irq/{{{','.join(map(str, numbers))}}}/smp_affinity_list"
        part = share(len(numbers) / len(interrupts))
        yield Finding(
            f"{part} of the interrupts of {side.interface.name} may",
            remedy=f"echo {','.join(map(str, sorted(spare)))} | sudo tee {files}",
        )


@INTERFACES.add("packet-steering", "warn", "kernel documentation, networking/scaling.rst")
def packet_steering(side: Side) -> Iterator[Finding]:
    """Packets are handed on to other CPUs than their interrupt's: on one machine that made rates
    worse, and hides receive work from a process's CPU time.
    """
    name = side.interface.name
    if side.interface.packet_steering:
        remedy = f"echo 0 | sudo tee /sys/class/net/{name}/queues/rx-*/rps_cpus"
        yield Finding(f"RPS is on for {name}", remedy=remedy)
