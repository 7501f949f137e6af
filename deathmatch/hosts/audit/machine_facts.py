"""Facts about a machine: its CPUs, memory and clock, and what runs on it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from deathmatch.hosts.audit.fact import Part, Source, fact
from deathmatch.hosts.audit.formats import cpu_list, cpu_ranges
from deathmatch.hosts.audit.printed import Printed, Unknown
from deathmatch.hosts.audit.show import giga, listed, on_or_off, share, yes_or_no
from deathmatch.hosts.audit.sources import CPU, file, first, lscpu, numbered

CLOCKSOURCE = "/sys/devices/system/clocksource/clocksource0/"
NUMA_NODE = "/sys/devices/system/node/node[0-9]*/cpulist"
MEMINFO = "/proc/meminfo"
NO_TURBO, BOOST = CPU + "intel_pstate/no_turbo", CPU + "cpufreq/boost"
UNSYNCHRONISED = 0x40  # STA_UNSYNC of adjtimex(2)
BUSY = ("user", "nice", "system", "irq", "softirq")


def _is_one(text: str) -> bool:
    return text == "1"


def _hertz(text: str) -> int:
    return 1000 * int(text)


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
    return listed(f"{node}: {cpu_ranges(cpus)}" for node, cpus in nodes.items())


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
    smt_active: bool | None = fact(
        file(CPU + "smt/active", _is_one), "SMT", on_or_off, changing=True
    )
    # Each node with its CPUs.
    numa_nodes: dict[int, list[int]] | None = fact(
        numbered(NUMA_NODE, cpu_list), "NUMA nodes", _nodes
    )
    governors: dict[int, str] | None = fact(
        numbered(CPU + "cpu[0-9]*/cpufreq/scaling_governor"), "governor",
        lambda governors: listed(sorted({*governors.values()})), changing=True,
    )  # fmt: skip
    frequency_driver: str | None = fact(first(CPU + "cpu[0-9]*/cpufreq/scaling_driver"))
    frequency_min_hz: int | None = fact(first(CPU + "cpu[0-9]*/cpufreq/cpuinfo_min_freq", _hertz))
    frequency_max_hz: int | None = fact(
        first(CPU + "cpu[0-9]*/cpufreq/cpuinfo_max_freq", _hertz), "highest frequency (GHz)",
        giga(".2f"),
    )  # fmt: skip
    turbo: bool | None = fact(Source(_turbo, (NO_TURBO, BOOST)), "turbo", yes_or_no, changing=True)
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
        _memory_bytes("MemAvailable"), "memory available (GB)", giga(".1f"), changing=True
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
    synchronised: bool | None = fact(
        _is_synchronised, "clock synchronised", yes_or_no, changing=True
    )
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
