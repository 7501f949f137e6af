"""Facts about the interface under test, and about the link between two hosts."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from deathmatch.hosts.audit.fact import Part, Source, fact
from deathmatch.hosts.audit.formats import cpu_list, cpu_ranges
from deathmatch.hosts.audit.printed import Printed, Unknown
from deathmatch.hosts.audit.show import giga, listed

AFFINITY = "/proc/irq/[0-9]*/smp_affinity_list"
UNKNOWN_SPEED = {0, 0xFFFF, 0xFFFFFFFF}
FULL_DUPLEX = 1
WITHOUT_INTERRUPTS = {"bridge", "dummy", "veth"}
# The answers of ethtool(8) that are no offloads.
NO_OFFLOADS = {"link", "driver", "rx-usecs", "adaptive-rx"}


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
    speed_bit_per_s: int | None = fact(_speed, "link speed (Gbit/s)", giga("g"), changing=True)
    full_duplex: bool | None = fact(_full_duplex, changing=True)
    queue_discipline: str | None = fact(
        lambda host: host.interface["qdisc"], "queueing discipline", changing=True
    )
    receive_queues: int | None = fact(lambda host: host.interface["num_rx_queues"])
    offloads: dict[str, bool] | None = fact(
        _offloads, "offloads off",
        lambda offloads: listed(name for name, on in offloads.items() if not on), changing=True,
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
        giga(".3g"),
    )  # fmt: skip
    path_mtu_bytes: int | None = fact(lambda link: link["path_mtu_bytes"], "path MTU (bytes)")
    received_bytes: int | None = fact(lambda link: link["received_bytes"])
    retransmitted_segments: int | None = fact(lambda link: link["retransmitted_segments"])
