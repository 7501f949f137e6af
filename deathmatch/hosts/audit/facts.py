"""What an audit knows of hosts and links: frozen models, in SI units; what is unknown is None.

Why something is unknown stands in its model's `unknown`, by the field's name.
"""

from pydantic import BaseModel, ConfigDict

SERVER = "server"


class Facts(BaseModel):
    """Facts of one kind; `unknown` has the reason for each field that is None."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    unknown: dict[str, str] = {}


class Processor(Facts):
    """The CPUs; frequencies are the hardware's limits."""

    model: str | None
    architecture: str | None
    hypervisor: str | None
    online: list[int] | None
    sockets: int | None
    # Each CPU with all threads of its core.
    siblings: dict[int, list[int]] | None
    smt_active: bool | None
    # Each node with its CPUs.
    numa_nodes: dict[int, list[int]] | None
    governors: dict[int, str] | None
    frequency_driver: str | None
    frequency_min_hz: int | None
    frequency_max_hz: int | None
    turbo: bool | None
    # What the kernel says of each vulnerability of the CPU.
    vulnerabilities: dict[str, str] | None


class Memory(Facts):
    """Memory, and whether the kernel makes huge pages of it unasked."""

    total_bytes: int | None
    available_bytes: int | None
    transparent_huge_pages: str | None


class Clock(Facts):
    """The clock source, and what the kernel knows of its clock's error."""

    source: str | None
    available: list[str] | None
    synchronised: bool | None
    error_bound_s: float | None


class Process(BaseModel):
    """A process that ran meanwhile; `cpus` is how many CPUs it kept busy."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pid: int
    name: str
    cpus: float


class Load(Facts):
    """What ran in a time of `window_s` before anything was measured.

    Shares are of the time of each CPU, as the kernel's ticks have it (proc(5)); `*_pressure` is the
    share of the time in which some task waited for the resource (Documentation/accounting/psi.rst).
    """

    window_s: float | None
    busy_share: dict[int, float] | None
    steal_share: float | None
    cpu_pressure: float | None
    io_pressure: float | None
    memory_pressure: float | None
    load_average: float | None
    # Those that the host can see, the busiest first.
    processes: list[Process] | None


class Interface(Facts):
    """The interface under test: the one with the testbed's address."""

    name: str | None
    # ip-link(8)'s kind, such as veth; "" for a device of hardware.
    kind: str | None
    driver: str | None
    up: bool | None
    mtu_bytes: int | None
    speed_bit_per_s: int | None
    full_duplex: bool | None
    queue_discipline: str | None
    receive_queues: int | None
    offloads: dict[str, bool] | None
    # How long the device may hold back an interrupt.
    receive_coalescing_s: float | None
    adaptive_coalescing: bool | None
    # Each interrupt of the device with the CPUs that may take it.
    interrupts: dict[int, list[int]] | None
    # Whether packets are handed on to other CPUs than their interrupt's (RPS).
    packet_steering: bool | None
    numa_node: int | None


class Limits(Facts):
    """How much the kernel lets a process and a namespace have."""

    descriptors: int | None
    descriptors_hard: int | None
    files_of_the_machine: int | None
    port_first: int | None
    port_last: int | None
    ports_reserved: int | None
    # Whether a port in TIME_WAIT may be used again after a second.
    port_reuse: bool | None
    time_wait_buckets: int | None
    somaxconn: int | None
    connections_tracked: int | None
    connections_trackable: int | None

    @property
    def ports(self) -> int | None:
        """How many source ports a connection to one address may choose from."""
        if self.port_first is None or self.port_last is None:
            return None
        return self.port_last - self.port_first + 1 - (self.ports_reserved or 0)


class Host(BaseModel):
    """All that is known of one host."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kernel: str | None
    system: str | None
    processor: Processor
    memory: Memory
    clock: Clock
    load: Load
    interface: Interface
    limits: Limits


class Link(Facts):
    """What one TCP connection between two hosts was seen to carry, in a second or two."""

    round_trip_min_s: float | None
    round_trip_median_s: float | None
    round_trip_p99_s: float | None
    bandwidth_bit_per_s: float | None
    path_mtu_bytes: int | None
    received_bytes: int | None
    retransmitted_segments: int | None


class Demand(BaseModel):
    """What a load asks of its hosts at the least, and what the worst server makes of it.

    Connections that are open at once count on both sides; a connection a second takes a port.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    connections_held: int = 0
    connections_worst: int = 0
    connections_per_s: float = 0
    requests_per_s: float = 0
    duration_s: float = 0


class Audit(BaseModel):
    """A testbed as it was found: its hosts by name, links by the client's, CPUs by the host's.

    `separate` says whether its hosts are machines of their own.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    testbed: str
    separate: bool
    hosts: dict[str, Host]
    links: dict[str, Link]
    cpus: dict[str, list[int]]
    demand: Demand

    @property
    def clients(self) -> list[str]:
        """The names of the hosts that offer load."""
        return [name for name in self.hosts if name != SERVER]
