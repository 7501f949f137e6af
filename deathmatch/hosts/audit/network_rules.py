"""Rules about the link under test and the interfaces at its ends."""

from collections.abc import Iterator

from deathmatch.hosts.audit import facts
from deathmatch.hosts.audit.facts import SERVER
from deathmatch.hosts.audit.rule import Seen, rule, share

ETHERNET_MTU_BYTES = 1500
# A small request and its reply on a connection of their own, with the headers of some ten packets.
REQUEST_BYTES = 1000
WARNED_ROUND_TRIP_S = 0.001
WARNED_JITTER = 10
NOTED_LOSS = 0.001
# Of a network that somebody set up to be slow.
SHAPERS = {"netem", "tbf", "htb", "cake", "hfsc"}
# LRO joins what must not be forwarded, and is off for good reason; a veth pair hands on large
# packets whole, so that GRO has nothing to join.
LRO, GRO = "large-receive-offload", "generic-receive-offload"


@rule(
    "link-failed", "refuse",
    "The client could not exchange anything with the server over the link under test.",
    "config/testbeds/, key address",
)  # fmt: skip
def link_failed(audit: facts.Audit) -> Iterator[Seen]:
    """Look for links that carry nothing."""
    for client, link in audit.links.items():
        if link.round_trip_median_s is None:
            reason = link.unknown.get("round_trip_median_s", "no reason given")
            mend = "see both ends: ip address, ip route get ADDRESS, and any firewall between"
            yield Seen(client, reason, mend)


@rule(
    "interface-down", "refuse",
    "The interface with the testbed's address is absent or has no carrier.",
    "ip-link(8)",
)  # fmt: skip
def interface_down(audit: facts.Audit) -> Iterator[Seen]:
    """Look for interfaces that are not there or down."""
    for name, host in audit.hosts.items():
        if host.interface.name is None:
            mend = "ip address add ADDRESS dev INTERFACE, or correct the testbed's `address`"
            yield Seen(name, host.interface.unknown.get("name", "no interface"), mend)
        elif host.interface.up is False:
            device = host.interface.name
            yield Seen(name, f"{device} is down", f"sudo ip link set {device} up")


@rule(
    "link-slow", "refuse",
    "The link carries fewer bytes than the highest offered rate makes: the link would be measured.",
    "about 1,000 bytes for a request with its connection",
)  # fmt: skip
def link_slow(audit: facts.Audit) -> Iterator[Seen]:
    """Look for links below what the load needs."""
    wanted = 8 * REQUEST_BYTES * audit.demand.requests_per_s
    for client, link in audit.links.items():
        if link.bandwidth_bit_per_s is not None and link.bandwidth_bit_per_s < wanted:
            read = f"{link.bandwidth_bit_per_s / 1e6:.3g} Mbit/s seen, {wanted / 1e6:.3g} needed"
            yield Seen(client, read, "take a faster link, or offer lower rates")


@rule(
    "round-trip-long", "warn",
    "Every connection and request waits for the link: latencies are mostly its own.",
    "measured over one TCP connection",
)  # fmt: skip
def round_trip_long(audit: facts.Audit) -> Iterator[Seen]:
    """Look for long round trips."""
    for client, link in audit.links.items():
        if (link.round_trip_median_s or 0) > WARNED_ROUND_TRIP_S:
            read = f"a round trip takes {1e3 * link.round_trip_median_s:.3g} ms"
            yield Seen(client, read, "put the hosts on one switch; tc qdisc show: is it delayed?")


@rule(
    "round-trip-jitter", "note",
    "Some round trips take much longer than most: the tail of latencies is partly the link's.",
    "measured over one TCP connection",
)  # fmt: skip
def round_trip_jitter(audit: facts.Audit) -> Iterator[Seen]:
    """Look for round trips that vary."""
    for client, link in audit.links.items():
        median_s, p99_s = link.round_trip_median_s, link.round_trip_p99_s
        if median_s and p99_s and p99_s > WARNED_JITTER * median_s:
            read = f"median {1e6 * median_s:.3g} us, 99th percentile {1e6 * p99_s:.3g} us"
            yield Seen(client, read, "end other load and traffic; keep interrupts off busy CPUs")


@rule(
    "retransmissions", "note",
    "Segments were lost, though only one connection was on the link.",
    "tcp(7), TCP_INFO",
)  # fmt: skip
def retransmissions(audit: facts.Audit) -> Iterator[Seen]:
    """Look for losses."""
    for client, link in audit.links.items():
        lost_bytes = (link.retransmitted_segments or 0) * (link.path_mtu_bytes or 0)
        if link.received_bytes and lost_bytes > NOTED_LOSS * link.received_bytes:
            part = share(lost_bytes / link.received_bytes)
            read = f"{link.retransmitted_segments:,} segments, {part} of the bytes, were sent again"
            yield Seen(client, read, "see drops at both ends: ip -s link; and on the switch")


@rule(
    "mtu-differs", "warn",
    "The ends send packets of different size: cost per byte differs by direction, and a path that "
    "drops large packets silently looks like a server that hangs.",
    "RFC 4821; tcp(7)",
)  # fmt: skip
def mtu_differs(audit: facts.Audit) -> Iterator[Seen]:
    """Look for ends of different MTU."""
    server = audit.hosts[SERVER].interface
    for client in audit.clients:
        other = audit.hosts[client].interface
        if server.mtu_bytes and other.mtu_bytes and server.mtu_bytes != other.mtu_bytes:
            read = f"MTU {other.mtu_bytes} on {other.name}, {server.mtu_bytes} at the server"
            mend = f"on one of them: sudo ip link set {other.name} mtu {server.mtu_bytes}"
            yield Seen(client, read, mend)


@rule(
    "mtu-small", "warn",
    "Packets are smaller than on plain Ethernet: a reply takes more of them.",
    "ip-link(8)",
)  # fmt: skip
def mtu_small(audit: facts.Audit) -> Iterator[Seen]:
    """Look for a small MTU."""
    for name, host in audit.hosts.items():
        if (host.interface.mtu_bytes or ETHERNET_MTU_BYTES) < ETHERNET_MTU_BYTES:
            device = host.interface.name
            mend = f"sudo ip link set {device} mtu {ETHERNET_MTU_BYTES}"
            yield Seen(name, f"MTU {host.interface.mtu_bytes} on {device}", mend)


@rule(
    "path-mtu-smaller", "warn",
    "Something between the hosts carries smaller packets than both of them send.",
    "ip(7), IP_MTU",
)  # fmt: skip
def path_mtu_smaller(audit: facts.Audit) -> Iterator[Seen]:
    """Look for a path narrower than its ends."""
    server = audit.hosts[SERVER].interface.mtu_bytes
    for client, link in audit.links.items():
        own = audit.hosts[client].interface.mtu_bytes
        if link.path_mtu_bytes and own and server and link.path_mtu_bytes < min(own, server):
            read = f"the path carries {link.path_mtu_bytes} bytes, both ends {min(own, server)}"
            yield Seen(client, read, "find the hop: tracepath ADDRESS")


@rule(
    "offloads-off", "note",
    "The CPU does what the device, or the stack at once for many packets, could do.",
    "ethtool(8)",
)  # fmt: skip
def offloads_off(audit: facts.Audit) -> Iterator[Seen]:
    """Look for offloads that are off."""
    for name, host in audit.hosts.items():
        known = host.interface.offloads or {}
        spared = {LRO, GRO} if host.interface.kind == "veth" else {LRO}
        off = [what for what, on in known.items() if not on and what not in spared]
        if off:
            device = host.interface.name
            words = " ".join(f"{what} on" for what in off)
            yield Seen(name, f"off: {', '.join(off)}", f"sudo ethtool -K {device} {words}")


@rule(
    "offloads-differ", "warn",
    "One end does work that the other's device does for it: cost per packet differs by direction.",
    "ethtool(8)",
)  # fmt: skip
def offloads_differ(audit: facts.Audit) -> Iterator[Seen]:
    """Look for ends of different offloads."""
    server = audit.hosts[SERVER].interface.offloads or {}
    for client in audit.clients:
        other = audit.hosts[client].interface
        own = other.offloads or {}
        differ = [what for what, on in server.items() if own.get(what, on) != on]
        if differ:
            words = " ".join(f"{what} {'on' if server[what] else 'off'}" for what in differ)
            mend = f"sudo ethtool -K {other.name} {words}"
            yield Seen(client, f"not as at the server: {', '.join(differ)}", mend)


@rule(
    "half-duplex", "warn",
    "The link sends or receives, never both: the ends' negotiation failed.",
    "ethtool(8)",
)  # fmt: skip
def half_duplex(audit: facts.Audit) -> Iterator[Seen]:
    """Look for half duplex."""
    for name, host in audit.hosts.items():
        if host.interface.full_duplex is False:
            device = host.interface.name
            yield Seen(name, f"{device} is half duplex", f"sudo ethtool -s {device} autoneg on")


@rule(
    "coalescing", "note",
    "The device holds back interrupts to join packets: each round trip waits for that.",
    "ethtool(8), --coalesce",
)  # fmt: skip
def coalescing(audit: facts.Audit) -> Iterator[Seen]:
    """Look for interrupts that are held back."""
    for name, host in audit.hosts.items():
        found = host.interface
        if found.adaptive_coalescing or (found.receive_coalescing_s or 0) > 0:
            how = "adaptive" if found.adaptive_coalescing else (
                f"{1e6 * found.receive_coalescing_s:.3g} us"
            )  # fmt: skip
            mend = f"sudo ethtool -C {found.name} adaptive-rx off rx-usecs 0"
            yield Seen(name, f"receive coalescing: {how}", mend)


@rule(
    "shaped", "warn",
    "A queueing discipline delays or limits what the host sends; the testbed did not ask for it.",
    "tc(8)",
)  # fmt: skip
def shaped(audit: facts.Audit) -> Iterator[Seen]:
    """Look for shapers."""
    for name, host in audit.hosts.items():
        if host.interface.queue_discipline in SHAPERS:
            device = host.interface.name
            read = f"{device} has the discipline {host.interface.queue_discipline}"
            yield Seen(name, read, f"sudo tc qdisc delete dev {device} root")


@rule(
    "interrupts-on-server-cpus", "note",
    "The device's interrupts may take the server's CPUs: receive work comes on top of its own.",
    "kernel documentation, core-api/irq/irq-affinity.rst",
)  # fmt: skip
def interrupts_on_server_cpus(audit: facts.Audit) -> Iterator[Seen]:
    """Look for interrupts on the server's CPUs."""
    host = audit.hosts[SERVER]
    own = {*audit.cpus[SERVER]}
    online = {*(host.processor.online or [])}
    found = [number for number, cpus in (host.interface.interrupts or {}).items() if own & {*cpus}]
    if found and online - own:
        spare = ",".join(map(str, sorted(online - own)))
        part = share(len(found) / len(host.interface.interrupts))
        read = f"{part} of the interrupts of {host.interface.name} may"
        files = f"/proc/irq/{{{','.join(map(str, found))}}}/smp_affinity_list"
        mend = f"echo {spare} | sudo tee {files}"
        yield Seen(SERVER, read, mend)


@rule(
    "packet-steering", "warn",
    "Packets are handed on to other CPUs than their interrupt's: on one machine that made rates "
    "worse, and hides receive work from a process's CPU time.",
    "kernel documentation, networking/scaling.rst",
)  # fmt: skip
def packet_steering(audit: facts.Audit) -> Iterator[Seen]:
    """Look for RPS."""
    for name, host in audit.hosts.items():
        if host.interface.packet_steering:
            device = host.interface.name
            mend = f"echo 0 | sudo tee /sys/class/net/{device}/queues/rx-*/rps_cpus"
            yield Seen(name, f"RPS is on for {device}", mend)


RULES = (
    link_failed, interface_down, link_slow, round_trip_long, round_trip_jitter, retransmissions,
    mtu_differs, mtu_small, path_mtu_smaller, offloads_off, offloads_differ, half_duplex,
    coalescing, shaped, interrupts_on_server_cpus, packet_steering,
)  # fmt: skip
