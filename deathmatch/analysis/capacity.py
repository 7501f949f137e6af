"""How many machines hold so many connections that exchange so many messages, and what gives out.

Arithmetic: each resource is needed in proportion to connections or to messages, and a machine has
so much of it. In: constants measured per message and per connection, and what machines have. Out:
needs, the machines that meet them, and the rate that a set of machines bears.
"""

import math
from dataclasses import dataclass

# Ethernet: preamble and delimiter 8, header 14, check sequence 4, gap between frames 12 (IEEE
# 802.3). IPv4 20 (RFC 791), TCP 20 (RFC 9293) with timestamps 12 (RFC 7323).
ETHERNET_BYTES, IP_BYTES, TCP_BYTES = 38, 20, 32
ETHERNET_LEAST_BYTES = 46
# A client's frames are masked (RFC 6455, 5.2).
MASK_BYTES = 4
# Linux holds back an acknowledgement that no data carries for 40 ms (TCP_DELACK_MIN, 1/25 s).
DELAYED_ACK_S = 0.04

CPU, MEMORY, PORTS, DESCRIPTORS = "CPU", "memory", "ports", "descriptors"
TO_SERVER, FROM_SERVER = "link to the server", "link from the server"
RATES = (CPU, TO_SERVER, FROM_SERVER)


@dataclass(frozen=True)
class Target:
    """What is wanted: connections held, and messages that are echoed per second over all."""

    connections: int
    rate_per_s: float
    message_bytes: int


@dataclass(frozen=True)
class Cost:
    """What one side needs: CPU per message sent and echoed, memory per connection."""

    cpu_us: float
    kernel_bytes: float
    process_bytes: float

    @property
    def memory_bytes(self) -> float:
        """What a connection needs of the machine's memory."""
        return self.kernel_bytes + self.process_bytes


@dataclass(frozen=True)
class Machine:
    """What one machine has.

    `addresses`: its source addresses, if it is a client's; `ports`: those that an address has to
    one port of the server; `descriptors`: of one process, for one process for each CPU.
    """

    cpus: int
    memory_bytes: float
    link_bits_per_s: float
    descriptors: int
    addresses: int = 1
    ports: int = 64_512


def frame_bytes(message_bytes: int, masked: bool) -> int:
    """Return what a WebSocket message takes on the wire, in one segment."""
    length = 2 if message_bytes < 126 else 4 if message_bytes < 1 << 16 else 10
    return _wire(length + (MASK_BYTES if masked else 0) + message_bytes)


def ack_bytes() -> int:
    """Return what a segment without data takes on the wire."""
    return _wire(0)


def _wire(data_bytes: int) -> int:
    return ETHERNET_BYTES + max(ETHERNET_LEAST_BYTES, IP_BYTES + TCP_BYTES + data_bytes)


def own_acks(target: Target) -> bool:
    """Return whether a client acknowledges each echo by a segment of its own.

    It does where its next message on that connection is due later than an acknowledgement waits.
    """
    return target.connections / target.rate_per_s > DELAYED_ACK_S


def bits(target: Target) -> dict[str, float]:
    """Return what a message with its echo takes of the link, in bits, each way."""
    ack = ack_bytes() if own_acks(target) else 0
    return {
        TO_SERVER: 8 * (frame_bytes(target.message_bytes, True) + ack),
        FROM_SERVER: 8 * frame_bytes(target.message_bytes, False),
    }


def needs(target: Target, cost: Cost) -> dict[str, float]:
    """Return what one side needs in all: CPUs, bytes, ports, descriptors, bits per second."""
    return {
        CPU: target.rate_per_s * cost.cpu_us / 1e6,
        MEMORY: target.connections * cost.memory_bytes,
        PORTS: target.connections,
        DESCRIPTORS: target.connections,
        **{way: target.rate_per_s * bit_count for way, bit_count in bits(target).items()},
    }


def has(machine: Machine, server: bool) -> dict[str, float]:
    """Return what one machine has of each resource; a server's ports are its clients' matter."""
    return {
        CPU: machine.cpus,
        MEMORY: machine.memory_bytes,
        **({} if server else {PORTS: machine.addresses * machine.ports}),
        DESCRIPTORS: machine.cpus * machine.descriptors,
        TO_SERVER: machine.link_bits_per_s,
        FROM_SERVER: machine.link_bits_per_s,
    }


def machines(target: Target, cost: Cost, machine: Machine, server: bool = False) -> dict[str, int]:
    """Return how many machines of that kind each resource asks for."""
    wanted = needs(target, cost)
    return {
        name: math.ceil(round(wanted[name] / available, 9))
        for name, available in has(machine, server).items()
    }


def first(asked: dict[str, float]) -> str:
    """Return the resource that asks for most, which is the first to give out."""
    return max(asked, key=asked.get)


def used(
    target: Target, cost: Cost, machine: Machine, server: bool, count: int
) -> dict[str, float]:
    """Return which share of each resource of `count` machines is needed; above 1, it gives out."""
    wanted = needs(target, cost)
    return {
        name: wanted[name] / (available * count) for name, available in has(machine, server).items()
    }


def rate_per_s(target: Target, sides: list[tuple[Cost, Machine, bool, int]]) -> float:
    """Return the messages per second that these machines bear, of the connections of `target`.

    `sides` has for each its cost, its machine, whether it is the server's, and how many there are.
    """
    return min(
        target.rate_per_s / share
        for side in sides
        for name, share in used(target, *side).items() if name in RATES
    )  # fmt: skip
