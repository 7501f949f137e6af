"""What `probe` printed on a host, made into `facts`: pure functions of its JSON.

Each field is read by itself; one that cannot be read is None, and its reason is the probe's, or
what could not be understood.
"""

import math
import re
from collections.abc import Callable
from statistics import median
from typing import Any, TypeVar

from deathmatch.hosts.audit import facts
from deathmatch.hosts.audit.formats import STAT, cpu_list, cpu_times, lscpu, stalled_us

Made = TypeVar("Made", bound=facts.Facts)
Raw = dict[str, Any]
Fields = dict[str, Callable[[], Any]]

CPU = "/sys/devices/system/cpu/"
CLOCKSOURCE = "/sys/devices/system/clocksource/clocksource0/"
UNSYNCHRONISED = 0x40  # STA_UNSYNC of adjtimex(2)
UNKNOWN_SPEED = {0, 0xFFFF, 0xFFFFFFFF}
FULL_DUPLEX = 1
WITHOUT_INTERRUPTS = {"bridge", "dummy", "veth"}
BUSY = ("user", "nice", "system", "irq", "softirq")


class Unknown(Exception):
    """Why something is not known."""


def host(raw: Raw) -> facts.Host:
    """Return what is known of a host, from its probe's JSON."""
    return facts.Host(
        kernel=raw["files"].get("/proc/sys/kernel/osrelease", "").strip() or None,
        system=_system(raw["files"].get("/etc/os-release", "")),
        processor=processor(raw),
        memory=memory(raw),
        clock=clock(raw),
        load=load(raw),
        interface=interface(raw),
        limits=limits(raw),
    )


def processor(raw: Raw) -> facts.Processor:
    """Return what is known of the CPUs."""

    def described() -> dict[str, str]:
        if not raw["lscpu"]:
            raise Unknown(raw["failed"].get("lscpu --json", "not asked"))
        return lscpu(raw["lscpu"])

    def field(name: str) -> str:
        if name not in (fields := described()):
            raise Unknown(f"lscpu does not name its {name}")
        return fields[name]

    def frequency_hz(which: str) -> int:
        return 1000 * int(_first(raw, CPU + f"cpu#/cpufreq/cpuinfo_{which}_freq"))

    return _made(
        facts.Processor,
        {
            "model": lambda: field("Model name"),
            "architecture": lambda: field("Architecture"),
            # A machine of hardware has no such line.
            "hypervisor": lambda: described().get("Hypervisor vendor", ""),
            "online": lambda: cpu_list(_text(raw, CPU + "online")),
            "sockets": lambda: int(field("Socket(s)")),
            "siblings": lambda: {
                number: cpu_list(text)
                for number, text in _each(raw, CPU + "cpu#/topology/thread_siblings_list").items()
            },
            "smt_active": lambda: _text(raw, CPU + "smt/active") == "1",
            "numa_nodes": lambda: {
                number: cpu_list(text)
                for number, text in _each(raw, "/sys/devices/system/node/node#/cpulist").items()
            },
            "governors": lambda: _each(raw, CPU + "cpu#/cpufreq/scaling_governor"),
            "frequency_driver": lambda: _first(raw, CPU + "cpu#/cpufreq/scaling_driver"),
            "frequency_min_hz": lambda: frequency_hz("min"),
            "frequency_max_hz": lambda: frequency_hz("max"),
            "turbo": lambda: _turbo(raw),
            "vulnerabilities": lambda: _vulnerabilities(raw),
        },
    )  # fmt: skip


def memory(raw: Raw) -> facts.Memory:
    """Return what is known of the memory."""

    def number_of(name: str) -> int:
        found = re.search(rf"^{name}:\s+(\d+) kB$", _text(raw, "/proc/meminfo"), re.MULTILINE)
        if not found:
            raise Unknown(f"/proc/meminfo has no {name}")
        return 1024 * int(found[1])

    huge = "/sys/kernel/mm/transparent_hugepage/enabled"
    return _made(
        facts.Memory,
        {
            "total_bytes": lambda: number_of("MemTotal"),
            "available_bytes": lambda: number_of("MemAvailable"),
            "transparent_huge_pages": lambda: re.search(r"\[(\w+)\]", _text(raw, huge))[1],
        },
    )


def clock(raw: Raw) -> facts.Clock:
    """Return what is known of the clock."""

    def kernels(key: str) -> int:
        if raw["clock"] is None:
            raise Unknown(raw["failed"].get("adjtimex", "not asked"))
        return raw["clock"][key]

    def bound() -> float:
        if kernels("status") & UNSYNCHRONISED:
            raise Unknown("the clock is not synchronised")
        return kernels("maxerror") / 1e6

    return _made(
        facts.Clock,
        {
            "source": lambda: _text(raw, CLOCKSOURCE + "current_clocksource"),
            "available": lambda: _text(raw, CLOCKSOURCE + "available_clocksource").split(),
            "synchronised": lambda: not kernels("status") & UNSYNCHRONISED,
            "error_bound_s": bound,
        },
    )


def load(raw: Raw) -> facts.Load:
    """Return what ran in the probe's window."""
    counted = raw["load"]

    def ends(path: str) -> tuple[str, str]:
        if counted is None:
            raise Unknown("not looked at: the probe was given no time for it")
        if path not in counted["before"] or path not in counted["after"]:
            raise Unknown(_reason(raw, path))
        return counted["before"][path], counted["after"][path]

    def share(what: tuple[str, ...], of: str) -> dict[str, float]:
        before, after = (cpu_times(text) for text in ends("/proc/stat"))
        shares = {}
        for cpu, times in after.items():
            used = {mode: times[mode] - before.get(cpu, times)[mode] for mode in STAT}
            total = sum(used.values())
            if re.fullmatch(of, cpu) and total:
                shares[cpu] = sum(used[mode] for mode in what) / total
        if not shares:
            raise Unknown("/proc/stat did not change")
        return shares

    def window_s() -> float:
        if counted is None:
            raise Unknown("not looked at: the probe was given no time for it")
        return counted["window_ns"] / 1e9

    def pressure(resource: str) -> float:
        before, after = (stalled_us(text) for text in ends(f"/proc/pressure/{resource}"))
        return min(1.0, (after - before) / 1e6 / window_s())

    def processes() -> list[facts.Process]:
        took_s = window_s()
        found = [
            facts.Process(pid=one["pid"], name=one["name"],
                          cpus=one["ticks"] / counted["tick_hz"] / took_s)
            for one in counted["processes"]
        ]  # fmt: skip
        return sorted(found, key=lambda one: (-one.cpus, one.pid))

    return _made(
        facts.Load,
        {
            "window_s": window_s,
            "busy_share": lambda: {
                int(cpu[3:]): one for cpu, one in share(BUSY, r"cpu\d+").items()
            },
            "steal_share": lambda: share(("steal",), "cpu")["cpu"],
            "cpu_pressure": lambda: pressure("cpu"),
            "io_pressure": lambda: pressure("io"),
            "memory_pressure": lambda: pressure("memory"),
            "load_average": lambda: float(_text(raw, "/proc/loadavg").split()[0]),
            "processes": processes,
        },
    )


def interface(raw: Raw) -> facts.Interface:
    """Return what is known of the interface under test."""
    answers = raw["ethtool"]

    def link() -> Raw:
        if raw["interface"] is None:
            shown = "ip -json -details address show"
            raise Unknown(raw["failed"].get("interface") or _reason(raw, shown))
        return raw["interface"]

    def ethtool(what: str) -> Any:
        link()
        if what not in answers:
            raise Unknown(_reason(raw, f"ethtool {what}"))
        return answers[what]

    def speed() -> int:
        megabits = ethtool("link")[0]
        if megabits in UNKNOWN_SPEED:
            raise Unknown("the driver does not know its speed")
        return megabits * 1_000_000

    def duplex() -> bool:
        speed()
        return ethtool("link")[1] == FULL_DUPLEX

    def offloads() -> dict[str, bool]:
        link()
        other = ("link", "driver", "rx-usecs", "adaptive-rx")
        if not (found := {name: bool(on) for name, on in answers.items() if name not in other}):
            raise Unknown("the driver tells none of them")
        return found

    def interrupts() -> dict[int, list[int]]:
        if link().get("linkinfo", {}).get("info_kind") in WITHOUT_INTERRUPTS:
            return {}
        _in_sys(raw, link()["ifname"])
        return {
            number: cpu_list(_text(raw, f"/proc/irq/{number}/smp_affinity_list"))
            for number in raw["interrupts"]
        }

    def steering() -> bool:
        folder = _in_sys(raw, link()["ifname"])
        masks = _each(raw, folder + "queues/rx-#/rps_cpus")
        return any(mask.strip("0,") for mask in masks.values())

    def node() -> int:
        number = int(_text(raw, _in_sys(raw, link()["ifname"]) + "device/numa_node"))
        if number < 0:
            raise Unknown("the device belongs to no node")
        return number

    return _made(
        facts.Interface,
        {
            "name": lambda: link()["ifname"],
            "kind": lambda: link().get("linkinfo", {}).get("info_kind", ""),
            "driver": lambda: ethtool("driver"),
            "up": lambda: "LOWER_UP" in link()["flags"],
            "mtu_bytes": lambda: link()["mtu"],
            "speed_bit_per_s": speed,
            "full_duplex": duplex,
            "queue_discipline": lambda: link()["qdisc"],
            "receive_queues": lambda: link()["num_rx_queues"],
            "offloads": offloads,
            "receive_coalescing_s": lambda: ethtool("rx-usecs") / 1e6,
            "adaptive_coalescing": lambda: bool(ethtool("adaptive-rx")),
            "interrupts": interrupts,
            "packet_steering": steering,
            "numa_node": node,
        },
    )


def limits(raw: Raw) -> facts.Limits:
    """Return what is known of the limits."""
    ipv4, netfilter = "/proc/sys/net/ipv4/", "/proc/sys/net/netfilter/"

    def number(path: str) -> int:
        return int(_text(raw, path))

    def port(place: int) -> int:
        return int(_text(raw, ipv4 + "ip_local_port_range").split()[place])

    def reserved() -> int:
        ports = cpu_list(_text(raw, ipv4 + "ip_local_reserved_ports"))
        return sum(port(0) <= one <= port(1) for one in ports)

    def reuse() -> bool:
        # 2 is for the loopback only, and without time stamps there is nothing to tell them apart.
        return number(ipv4 + "tcp_tw_reuse") == 1 and number(ipv4 + "tcp_timestamps") != 0

    return _made(
        facts.Limits,
        {
            "descriptors": lambda: raw["descriptors"][0],
            "descriptors_hard": lambda: raw["descriptors"][1],
            "files_of_the_machine": lambda: number("/proc/sys/fs/file-max"),
            "port_first": lambda: port(0),
            "port_last": lambda: port(1),
            "ports_reserved": reserved,
            "port_reuse": reuse,
            "time_wait_buckets": lambda: number(ipv4 + "tcp_max_tw_buckets"),
            "somaxconn": lambda: number("/proc/sys/net/core/somaxconn"),
            "connections_tracked": lambda: number(netfilter + "nf_conntrack_count"),
            "connections_trackable": lambda: number(netfilter + "nf_conntrack_max"),
        },
    )


def link(raw: Raw) -> facts.Link:
    """Return what is known of a link, from the JSON of `link_probe call`."""
    failed = raw.get("failed", "")

    def answer(key: str) -> Any:
        if failed:
            raise Unknown(failed)
        return raw[key]

    def trips_s() -> list[float]:
        return sorted(trip_ns / 1e9 for trip_ns in answer("round_trips_ns"))

    return _made(
        facts.Link,
        {
            "round_trip_min_s": lambda: trips_s()[0],
            "round_trip_median_s": lambda: median(trips_s()),
            "round_trip_p99_s": lambda: trips_s()[math.ceil(0.99 * len(trips_s())) - 1],
            "bandwidth_bit_per_s": lambda: 8e9 * answer("received_bytes") / answer("took_ns"),
            "path_mtu_bytes": lambda: answer("path_mtu_bytes"),
            "received_bytes": lambda: answer("received_bytes"),
            "retransmitted_segments": lambda: answer("retransmitted_segments"),
        },
    )


def _made(model: type[Made], fields: Fields) -> Made:
    """Return the model with each field that can be told, and why for each that cannot."""
    values: dict[str, Any] = {}
    unknown = {}
    for name, read in fields.items():
        try:
            values[name] = read()
        except Unknown as reason:
            values[name], unknown[name] = None, str(reason)
        except (ValueError, KeyError, IndexError, TypeError) as error:
            values[name], unknown[name] = None, f"not understood: {error!r}"
    return model(**values, unknown=unknown)


def _text(raw: Raw, path: str) -> str:
    if path not in raw["files"]:
        raise Unknown(_reason(raw, path))
    return raw["files"][path].strip()


def _each(raw: Raw, pattern: str) -> dict[int, str]:
    """Return {number: text} of all files of a kind; # stands for the number in their path."""
    before, _, after = map(re.escape, pattern.partition("#"))
    names = {re.fullmatch(rf"{before}(\d+){after}", path): path for path in raw["files"]}
    found = {int(match[1]): raw["files"][path].strip() for match, path in names.items() if match}
    if not found:
        raise Unknown(_reason(raw, pattern.replace("#", "*")))
    return dict(sorted(found.items()))


def _first(raw: Raw, pattern: str) -> str:
    return next(iter(_each(raw, pattern).values()))


def _reason(raw: Raw, path: str) -> str:
    reason = raw["failed"].get(path) or raw["failed"].get(path.replace("*", "[0-9]*"))
    return f"{path}: {reason or 'not asked'}"


def _in_sys(raw: Raw, name: str) -> str:
    """Return the interface's folder in /sys; Unknown if that is of another namespace."""
    folder = f"/sys/class/net/{name}/"
    if folder in raw["failed"]:
        raise Unknown(raw["failed"][folder])
    return folder


def _turbo(raw: Raw) -> bool:
    no_turbo = CPU + "intel_pstate/no_turbo"
    if no_turbo in raw["files"]:
        return _text(raw, no_turbo) == "0"
    return _text(raw, CPU + "cpufreq/boost") == "1"


def _vulnerabilities(raw: Raw) -> dict[str, str]:
    folder = CPU + "vulnerabilities/"
    found = {
        path.removeprefix(folder): text.strip()
        for path, text in raw["files"].items()
        if path.startswith(folder)
    }
    if not found:
        raise Unknown(_reason(raw, folder + "*"))
    return found


def _system(text: str) -> str | None:
    found = re.search(r'^PRETTY_NAME="?([^"\n]*)', text, re.MULTILINE)
    return found[1] if found else None
