"""What an audit knows of hosts and links: each fact once, with its source and how it is shown."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from statistics import median
from typing import Any

from deathmatch.hosts.audit.fact import Part, Source, fact, facts, read
from deathmatch.hosts.audit.formats import cpu_list, cpu_ranges
from deathmatch.hosts.audit.printed import Printed, PrintedLink, Raw, Unknown
from deathmatch.hosts.audit.sources import CPU, file, first, lscpu, numbered

SERVER = "server"
CLOCKSOURCE = "/sys/devices/system/clocksource/clocksource0/"
NUMA_NODE = "/sys/devices/system/node/node[0-9]*/cpulist"
AFFINITY = "/proc/irq/[0-9]*/smp_affinity_list"
MEMINFO, IPV4 = "/proc/meminfo", "/proc/sys/net/ipv4/"
PORT_RANGE, RESERVED = IPV4 + "ip_local_port_range", IPV4 + "ip_local_reserved_ports"
CONNTRACK = "/proc/sys/net/netfilter/nf_conntrack_"
NO_TURBO, BOOST = CPU + "intel_pstate/no_turbo", CPU + "cpufreq/boost"
UNSYNCHRONISED = 0x40  # STA_UNSYNC of adjtimex(2)
UNKNOWN_SPEED = {0, 0xFFFF, 0xFFFFFFFF}
FULL_DUPLEX = 1
WITHOUT_INTERRUPTS = {"bridge", "dummy", "veth"}
BUSY = ("user", "nice", "system", "irq", "softirq")
# The answers of ethtool(8) that are no offloads.
NO_OFFLOADS = {"link", "driver", "rx-usecs", "adaptive-rx"}


def share(value: float) -> str:
    """Return a share in percent."""
    return f"{100 * value:.3g} %"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _count(number: int) -> str:
    return f"{number:,}"


def _giga(digits: str) -> Any:
    return lambda value: f"{value / 1e9:{digits}}"


def _listed(items: Any) -> str:
    return ", ".join(items) or "none"


def _is_one(text: str) -> bool:
    return text == "1"


def _hertz(text: str) -> int:
    return 1000 * int(text)


def _system(text: str) -> str:
    return re.search(r'^PRETTY_NAME="?([^"\n]*)', text, re.MULTILINE)[1]


def _memory_bytes(name: str) -> Source:
    def amount(text: str) -> int:
        match = re.search(rf"^{name}:\s+(\d+) kB$", text, re.MULTILINE)
        if not match:
            raise Unknown(f"{MEMINFO} has no {name}")
        return 1024 * int(match[1])

    return file(MEMINFO, amount)


def _turbo(host: Printed) -> bool:
    if NO_TURBO in host.files:
        return host.text(NO_TURBO) == "0"
    return host.text(BOOST) == "1"


def _nodes(nodes: Mapping[int, list[int]]) -> str:
    return _listed(f"{node}: {cpu_ranges(cpus)}" for node, cpus in nodes.items())


def _mitigations(states: Mapping[str, str]) -> str:
    words = {"Mitigation": "mitigated", "Vulnerable": "open", "Not affected": "not concerned"}
    kinds = [state.partition(":")[0] for state in states.values()]
    return ", ".join(
        f"{sum(kind.startswith(begin) for kind in kinds)} {word}" for begin, word in words.items()
    )


@dataclass(frozen=True, kw_only=True)
class Processor(Part):
    """The CPUs; frequencies are the hardware's limits."""

    model: str | None = fact(lscpu("Model name"), "CPU")
    architecture: str | None = fact(lscpu("Architecture"))
    # A machine of hardware has no such line.
    hypervisor: str | None = fact(
        lambda host: host.lscpu.get("Hypervisor vendor", ""), "hypervisor",
        lambda name: name or "none",
    )  # fmt: skip
    online: list[int] | None = fact(
        file(CPU + "online", cpu_list), "CPUs online", cpu_ranges, changing=True
    )
    sockets: int | None = fact(lscpu("Socket(s)", int))
    # Each CPU with all threads of its core.
    siblings: dict[int, list[int]] | None = fact(
        numbered(CPU + "cpu[0-9]*/topology/thread_siblings_list", cpu_list)
    )
    smt_active: bool | None = fact(file(CPU + "smt/active", _is_one), "SMT", _yes, changing=True)
    # Each node with its CPUs.
    numa_nodes: dict[int, list[int]] | None = fact(
        numbered(NUMA_NODE, cpu_list), "NUMA nodes", _nodes
    )
    governors: dict[int, str] | None = fact(
        numbered(CPU + "cpu[0-9]*/cpufreq/scaling_governor"), "governor",
        lambda governors: _listed(sorted({*governors.values()})), changing=True,
    )  # fmt: skip
    frequency_driver: str | None = fact(first(CPU + "cpu[0-9]*/cpufreq/scaling_driver"))
    frequency_min_hz: int | None = fact(first(CPU + "cpu[0-9]*/cpufreq/cpuinfo_min_freq", _hertz))
    frequency_max_hz: int | None = fact(
        first(CPU + "cpu[0-9]*/cpufreq/cpuinfo_max_freq", _hertz), "highest frequency (GHz)",
        _giga(".2f"),
    )  # fmt: skip
    turbo: bool | None = fact(Source(_turbo, (NO_TURBO, BOOST)), "turbo", _yes, changing=True)
    # What the kernel says of each vulnerability of the CPU.
    vulnerabilities: dict[str, str] | None = fact(
        Source(lambda host: host.matching(CPU + "vulnerabilities/*"), (CPU + "vulnerabilities/*",)),
        "vulnerabilities", _mitigations,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Memory(Part):
    """Memory, and whether the kernel makes huge pages of it unasked."""

    total_bytes: int | None = fact(_memory_bytes("MemTotal"))
    available_bytes: int | None = fact(
        _memory_bytes("MemAvailable"), "memory available (GB)", _giga(".1f"), changing=True
    )
    transparent_huge_pages: str | None = fact(
        file(
            "/sys/kernel/mm/transparent_hugepage/enabled",
            lambda text: re.search(r"\[(\w+)\]", text)[1],
        ),
        "transparent huge pages", changing=True,
    )  # fmt: skip


def _is_synchronised(host: Printed) -> bool:
    return not host.clock["status"] & UNSYNCHRONISED


def _error_bound_s(host: Printed) -> float:
    if not _is_synchronised(host):
        raise Unknown("the clock is not synchronised")
    return host.clock["maxerror"] / 1e6


@dataclass(frozen=True, kw_only=True)
class Clock(Part):
    """The clock source, and what the kernel knows of its clock's error."""

    source: str | None = fact(
        file(CLOCKSOURCE + "current_clocksource"), "clock source", changing=True
    )
    available: list[str] | None = fact(file(CLOCKSOURCE + "available_clocksource", str.split))
    synchronised: bool | None = fact(_is_synchronised, "clock synchronised", _yes, changing=True)
    error_bound_s: float | None = fact(_error_bound_s, changing=True)


@dataclass(frozen=True)
class Process:
    """A process that ran meanwhile; `cpus` is how many CPUs it kept busy."""

    pid: int
    name: str
    cpus: float


def _processes(host: Printed) -> list[Process]:
    counted, window_s = host.counted, host.window_s
    processes = [
        Process(process["pid"], process["name"], process["ticks"] / counted["tick_hz"] / window_s)
        for process in counted["processes"]
    ]
    return sorted(processes, key=lambda process: (-process.cpus, process.pid))


def _busy(shares: Mapping[int, float]) -> str:
    mean, busiest = sum(shares.values()) / len(shares), max(shares, key=shares.get)
    return f"{share(mean)} on average, {share(shares[busiest])} of CPU {busiest}"


@dataclass(frozen=True, kw_only=True)
class Load(Part):
    """What ran in a time of `window_s` before anything was measured.

    Shares are of the time of each CPU, as the kernel's ticks have it (proc(5)); `*_pressure` is the
    share of the time in which some task waited for the resource (Documentation/accounting/psi.rst).
    """

    window_s: float | None = fact(lambda host: host.window_s)
    busy_share: dict[int, float] | None = fact(
        lambda host: {
            int(cpu.removeprefix("cpu")): busy
            for cpu, busy in host.cpu_shares(BUSY, r"cpu\d+").items()
        },
        "CPUs busy", _busy,
    )  # fmt: skip
    steal_share: float | None = fact(
        lambda host: host.cpu_shares(("steal",), "cpu")["cpu"], "stolen", share
    )
    cpu_pressure: float | None = fact(lambda host: host.pressure("cpu"), "waited for CPU", share)
    io_pressure: float | None = fact(lambda host: host.pressure("io"), "waited for I/O", share)
    memory_pressure: float | None = fact(
        lambda host: host.pressure("memory"), "waited for memory", share
    )
    load_average: float | None = fact(file("/proc/loadavg", lambda text: float(text.split()[0])))
    # Those that the host can see, the busiest first.
    processes: list[Process] | None = fact(_processes)


def _speed(host: Printed) -> int:
    megabits = host.ethtool("link")[0]
    if megabits in UNKNOWN_SPEED:
        raise Unknown("the driver does not know its speed")
    return megabits * 1_000_000


def _full_duplex(host: Printed) -> bool:
    # Where the speed is unknown, so is this.
    return _speed(host) > 0 and host.ethtool("link")[1] == FULL_DUPLEX


def _offloads(host: Printed) -> dict[str, bool]:
    answers = host.raw["ethtool"] if host.interface else {}
    offloads = {name: bool(on) for name, on in answers.items() if name not in NO_OFFLOADS}
    if not offloads:
        raise Unknown("the driver names none of them")
    return offloads


def _interrupts(host: Printed) -> dict[int, list[int]]:
    if host.kind in WITHOUT_INTERRUPTS or not host.device:
        return {}
    return {
        number: cpu_list(host.text(AFFINITY.replace("[0-9]*", str(number))))
        for number in host.raw["interrupts"]
    }


def _shown_interrupts(interrupts: Mapping[int, list[int]]) -> str:
    cpus = {cpu for allowed in interrupts.values() for cpu in allowed}
    return f"{len(interrupts)}, on CPUs {cpu_ranges(cpus)}" if interrupts else "none"


def _packet_steering(host: Printed) -> bool:
    masks = host.matching(host.device + "queues/rx-*/rps_cpus")
    return any(mask.strip("0,") for mask in masks.values())


def _numa_node(host: Printed) -> int:
    number = int(host.text(host.device + "device/numa_node"))
    if number < 0:
        raise Unknown("the device belongs to no node")
    return number


@dataclass(frozen=True, kw_only=True)
class Interface(Part):
    """The interface under test: the one with the testbed's address."""

    name: str | None = fact(lambda host: host.interface["ifname"], "interface", changing=True)
    # As ip-link(8) has it, such as veth; "" for a device of hardware.
    kind: str | None = fact(
        lambda host: host.kind, "kind of interface", lambda kind: kind or "hardware", changing=True
    )
    driver: str | None = fact(lambda host: host.ethtool("driver"), "driver", changing=True)
    up: bool | None = fact(lambda host: "LOWER_UP" in host.interface["flags"], changing=True)
    mtu_bytes: int | None = fact(lambda host: host.interface["mtu"], "MTU (bytes)", changing=True)
    speed_bit_per_s: int | None = fact(_speed, "link speed (Gbit/s)", _giga("g"), changing=True)
    full_duplex: bool | None = fact(_full_duplex, changing=True)
    queue_discipline: str | None = fact(
        lambda host: host.interface["qdisc"], "queueing discipline", changing=True
    )
    receive_queues: int | None = fact(lambda host: host.interface["num_rx_queues"])
    offloads: dict[str, bool] | None = fact(
        _offloads, "offloads off",
        lambda offloads: _listed(name for name, on in offloads.items() if not on), changing=True,
    )  # fmt: skip
    # How long the device may hold back an interrupt.
    receive_coalescing_s: float | None = fact(
        lambda host: host.ethtool("rx-usecs") / 1e6, changing=True
    )
    adaptive_coalescing: bool | None = fact(
        lambda host: bool(host.ethtool("adaptive-rx")), changing=True
    )
    # Each interrupt of the device with the CPUs that may take it.
    interrupts: dict[int, list[int]] | None = fact(
        Source(_interrupts, (AFFINITY,)), "interrupts", _shown_interrupts
    )
    # Whether packets are handed on to other CPUs than their interrupt's (RPS).
    packet_steering: bool | None = fact(_packet_steering)
    numa_node: int | None = fact(_numa_node)


def _port(place: int) -> Source:
    return file(PORT_RANGE, lambda text: int(text.split()[place]))


def _ports_reserved(host: Printed) -> int:
    lowest, highest = map(int, host.text(PORT_RANGE).split())
    return sum(lowest <= port <= highest for port in cpu_list(host.text(RESERVED)))


def _port_reuse(host: Printed) -> bool:
    # 2 is for the loopback only, and without time stamps old segments cannot be told from new ones.
    reuse, stamps = host.text(IPV4 + "tcp_tw_reuse"), host.text(IPV4 + "tcp_timestamps")
    return int(reuse) == 1 and int(stamps) != 0


@dataclass(frozen=True, kw_only=True)
class Limits(Part):
    """How much the kernel lets a process and a namespace have."""

    descriptors: int | None = fact(
        lambda host: host.raw["descriptors"][0], "open files of a process", _count, changing=True
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
        "ports reused after 1 s", _yes, changing=True,
    )  # fmt: skip
    time_wait_buckets: int | None = fact(file(IPV4 + "tcp_max_tw_buckets", int), changing=True)
    somaxconn: int | None = fact(file("/proc/sys/net/core/somaxconn", int), changing=True)
    connections_tracked: int | None = fact(
        file(CONNTRACK + "count", int), "connections tracked", _count, changing=True
    )
    connections_trackable: int | None = fact(file(CONNTRACK + "max", int), changing=True)

    @property
    def ports(self) -> int | None:
        """How many source ports a connection to one address may choose from."""
        if self.port_first is None or self.port_last is None:
            return None
        return self.port_last - self.port_first + 1 - (self.ports_reserved or 0)


@dataclass(frozen=True, kw_only=True)
class Host(Part):
    """All that is known of one host."""

    kernel: str | None = fact(file("/proc/sys/kernel/osrelease"), "kernel")
    system: str | None = fact(file("/etc/os-release", _system), "system")
    processor: Processor
    memory: Memory
    clock: Clock
    load: Load
    interface: Interface
    limits: Limits

    @property
    def parts(self) -> dict[str, Part]:
        """Its parts by their names."""
        return {name: getattr(self, name) for name in PARTS}


PARTS: Mapping[str, type[Part]] = {
    field.name: field.type for field in fields(Host) if isinstance(field.type, type)
    and issubclass(field.type, Part)
}  # fmt: skip


def patterns(whole: bool) -> list[str]:
    """Return the files that the probe must print: all, or those that change between two trials."""
    definitions = [definition for part in (Host, *PARTS.values()) for _, definition in facts(part)]
    return sorted({
        file for definition in definitions if whole or definition.changing
        for file in definition.source.files
    })  # fmt: skip


def host(raw: Raw) -> Host:
    """Return what is known of a host, from its probe's JSON."""
    printed = Printed(raw)
    return read(Host, printed, **{name: read(part, printed) for name, part in PARTS.items()})


def load(raw: Raw) -> Load:
    """Return what ran in the probe's window, from its JSON."""
    return read(Load, Printed(raw))


def _micro(seconds: float) -> str:
    return f"{1e6 * seconds:.3g}"


@dataclass(frozen=True, kw_only=True)
class Link(Part):
    """What one TCP connection between two hosts was seen to carry, in a second or two."""

    round_trip_min_s: float | None = fact(
        lambda link: link.trips_s[0], "shortest round trip (us)", _micro
    )
    round_trip_median_s: float | None = fact(
        lambda link: median(link.trips_s), "median round trip (us)", _micro
    )
    round_trip_p99_s: float | None = fact(
        lambda link: link.trips_s[math.ceil(0.99 * len(link.trips_s)) - 1],
        "99th percentile (us)", _micro,
    )  # fmt: skip
    bandwidth_bit_per_s: float | None = fact(
        lambda link: 8e9 * link["received_bytes"] / link["took_ns"], "bandwidth (Gbit/s)",
        _giga(".3g"),
    )  # fmt: skip
    path_mtu_bytes: int | None = fact(lambda link: link["path_mtu_bytes"], "path MTU (bytes)")
    received_bytes: int | None = fact(lambda link: link["received_bytes"])
    retransmitted_segments: int | None = fact(lambda link: link["retransmitted_segments"])


def link(raw: Raw) -> Link:
    """Return what is known of a link, from the JSON of `link_probe call`."""
    return read(Link, PrintedLink(raw))


@dataclass(frozen=True)
class Demand:
    """What a load asks of its hosts at the least, and what the worst server makes of it.

    Connections that are open at once count on both sides; a connection a second takes a port.
    """

    connections_held: int = 0
    connections_worst: int = 0
    connections_per_s: float = 0
    requests_per_s: float = 0
    duration_s: float = 0


@dataclass(frozen=True)
class Audit:
    """A testbed as it was: its hosts by name, links by the client's, used CPUs by the host's.

    `separate` says whether its hosts are machines of their own.
    """

    testbed: str
    separate: bool
    hosts: dict[str, Host]
    links: dict[str, Link]
    cpus: dict[str, list[int]]
    demand: Demand
