"""The state of a host: its CPUs, memory, clock, interface and limits, as the kernel shows them.

Every trial records it: the host's agent reads it without root, in some ten milliseconds. A value
that the kernel does not show is None.
"""

import json
import re
import time
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from typing import Any

from deathmatch.agent.kernel import MODES
from deathmatch.hosts.hardware import cpu_numbers
from deathmatch.hosts.host import GOVERNORS, Host

State = dict[str, dict[str, Any]]
"""Facts by part and name, as a trial's record has them under `hosts`."""

_CPU = "/sys/devices/system/cpu/"
_CLOCK = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
_NET = "/proc/sys/net/"
_FILES = (
    "/proc/meminfo", f"{_CPU}online", f"{_CPU}smt/active", GOVERNORS,
    f"{_CPU}intel_pstate/no_turbo", f"{_CPU}cpufreq/boost", _CLOCK,
    f"{_NET}core/somaxconn", f"{_NET}ipv4/ip_local_*", f"{_NET}ipv4/tcp_tw_reuse",
    f"{_NET}ipv4/tcp_timestamps", f"{_NET}ipv4/tcp_max_tw_buckets",
    f"{_NET}ipv4/tcp_abort_on_overflow", f"{_NET}ipv4/tcp_congestion_control",
    f"{_NET}netfilter/nf_conntrack_[cm]*", "/sys/class/net/*/speed",
)  # fmt: skip
# Prints the limit of open files, the lines of the files after their paths, and the interfaces.
_READ = f"""
ulimit -n
grep --no-messages --with-filename '' {" ".join(_FILES)} || :
ip -json -4 address show
"""
_BUSY = ("user", "nice", "system", "irq", "softirq")


def read(host: Host, address: str) -> State:
    """Return the state of a host; `address` is that of its interface under test.

    Raises UserError if it cannot be read: the host needs iproute2.
    """
    return parsed(host.run("sh", "-ec", _READ), address)


def parsed(shown: str, address: str) -> State:
    """Return the state, given the output of `_READ`."""
    descriptors, *lines, links = shown.splitlines()
    files: dict[str, list[str]] = {}
    for path, _, text in (line.partition(":") for line in lines):
        files.setdefault(path, []).append(text)

    def number(path: str) -> int | None:
        return int(files[path][0]) if path in files else None

    def words(path: str) -> list[str]:
        return files.get(path, [""])[0].split()

    link = by_address(links).get(address, {})
    name = link.get("ifname")
    speed = number(f"/sys/class/net/{name}/speed") or 0
    stopped, boost = number(f"{_CPU}intel_pstate/no_turbo"), number(f"{_CPU}cpufreq/boost")
    governors = {text for path, (text, *_) in files.items() if fnmatch(path, GOVERNORS)}
    first, last = map(int, words(f"{_NET}ipv4/ip_local_port_range") or (0, 65535))
    reserved = cpu_numbers(" ".join(words(f"{_NET}ipv4/ip_local_reserved_ports")))
    available = re.search(r"MemAvailable:\s+(\d+)", "\n".join(files.get("/proc/meminfo", [])))
    return {
        "processor": {
            "online": cpu_numbers(" ".join(words(f"{_CPU}online"))),
            "smt_active": _flag(number(f"{_CPU}smt/active")),
            "governors": sorted(governors) or None,
            "turbo": _flag(boost if stopped is None else 1 - stopped),
        },
        "memory": {"available_bytes": int(available[1]) * 1024 if available else None},
        "clock": {"source": " ".join(words(_CLOCK)) or None},
        "interface": {
            "name": name,
            "up": "LOWER_UP" in link.get("flags", []),
            "mtu_bytes": link.get("mtu"),
            "speed_bit_per_s": speed * 1_000_000 if speed > 0 else None,
        },
        "limits": {
            "descriptors": int(descriptors) if descriptors.isdigit() else None,
            "port_first": first,
            "port_last": last,
            "ports_reserved": sum(first <= port <= last for port in reserved),
            # 2 is for the loopback only; without time stamps the kernel reuses no port early.
            "port_reuse": words(f"{_NET}ipv4/tcp_tw_reuse") == ["1"]
            and words(f"{_NET}ipv4/tcp_timestamps") != ["0"],
            "time_wait_buckets": number(f"{_NET}ipv4/tcp_max_tw_buckets"),
            "somaxconn": number(f"{_NET}core/somaxconn"),
            "abort_on_overflow": _flag(number(f"{_NET}ipv4/tcp_abort_on_overflow")),
            "congestion_control": " ".join(words(f"{_NET}ipv4/tcp_congestion_control")) or None,
            "connections_tracked": number(f"{_NET}netfilter/nf_conntrack_count"),
            "connections_trackable": number(f"{_NET}netfilter/nf_conntrack_max"),
        },
    }


def _flag(number: int | None) -> bool | None:
    return None if number is None else number > 0


def by_address(shown: str) -> dict[str, dict[str, Any]]:
    """Return {address: interface}, given the output of `ip -json -4 address show`."""
    return {
        address["local"]: link for link in json.loads(shown)
        for address in link.get("addr_info", [])
    }  # fmt: skip


def load(
    machines: Mapping[str, tuple[Host, Sequence[int]]], window_s: float
) -> dict[str, dict[str, float]]:
    """Return the load on these CPUs of hosts for a time, by name: `busy_share`, `steal_share`."""

    def counted() -> dict[str, dict[str, int]]:
        return {name: host.sample([], cpus=on)["machine"] for name, (host, on) in machines.items()}

    before, shares = counted(), {}
    time.sleep(window_s)
    for name, after in counted().items():
        keys = {mode: f"server_cpus_{mode}_us" for mode in MODES}
        used = {mode: after[key] - before[name][key] for mode, key in keys.items()}
        total, busy = sum(used.values()) or 1, sum(used[mode] for mode in _BUSY)
        shares[name] = {"busy_share": busy / total, "steal_share": used["steal"] / total}
    return shares
