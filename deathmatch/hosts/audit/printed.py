"""What the probes printed on a host, as the facts read it.

Whatever cannot be read raises Unknown, with the probe's reason.
"""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from deathmatch.hosts.audit.formats import STAT, cpu_times, lscpu, stalled_us

Raw = Mapping[str, Any]


class Unknown(Exception):
    """Why something is not known."""


class Printed:
    """The JSON that `probe` printed on a host."""

    def __init__(self, raw: Raw):
        self.raw = raw
        self.files: Mapping[str, str] = raw["files"]

    def reason(self, name: str) -> Unknown:
        """Return why a file or an answer is not there."""
        return Unknown(f"{name}: {self.raw['failed'].get(name) or 'not asked'}")

    def part(self, key: str, name: str) -> Any:
        """Return a part of what was printed, which is None where `name` failed."""
        if self.raw[key] is None:
            raise Unknown(self.raw["failed"].get(name, "not asked"))
        return self.raw[key]

    def text(self, path: str) -> str:
        """Return a file's text without white space around it."""
        if path not in self.files:
            raise self.reason(path)
        return self.files[path].strip()

    def matching(self, pattern: str) -> dict[str, str]:
        """Return {name: text} of the files of a pattern; the name stands for its * or [0-9]*."""
        expression = re.escape(pattern).replace(re.escape("[0-9]*"), r"(\d+)")
        expression = expression.replace(re.escape("*"), "([^/]+)")
        matches = {path: re.fullmatch(expression, path) for path in self.files}
        texts = {match[1]: self.text(path) for path, match in matches.items() if match}
        if not texts:
            raise self.reason(pattern)
        return texts

    def numbered(self, pattern: str) -> dict[int, str]:
        """Return {number: text} of the files of a pattern with [0-9]*, sorted."""
        return dict(sorted((int(name), text) for name, text in self.matching(pattern).items()))

    @cached_property
    def lscpu(self) -> dict[str, str]:
        """The fields of lscpu(1)."""
        return lscpu(self.part("lscpu", "lscpu --json"))

    @property
    def clock(self) -> Raw:
        """The kernel's answer to adjtimex(2)."""
        return self.part("clock", "adjtimex")

    @property
    def counted(self) -> Raw:
        """What was counted at both ends of the window."""
        if self.raw["load"] is None:
            raise Unknown("not looked at: the probe was given no time for it")
        return self.raw["load"]

    @property
    def window_s(self) -> float:
        """How long the window was."""
        return self.counted["window_ns"] / 1e9

    def ends(self, path: str) -> tuple[str, str]:
        """Return a file's text at the beginning and at the end of the window."""
        before, after = self.counted["before"], self.counted["after"]
        if path not in before or path not in after:
            raise self.reason(path)
        return before[path], after[path]

    def cpu_shares(self, modes: tuple[str, ...], cpus: str) -> dict[str, float]:
        """Return the share of the window that CPUs spent in some modes; `cpus` is a pattern."""
        before, after = map(cpu_times, self.ends("/proc/stat"))
        shares = {}
        for cpu, times in after.items():
            used = {mode: times[mode] - before.get(cpu, times)[mode] for mode in STAT}
            total = sum(used.values())
            if re.fullmatch(cpus, cpu) and total:
                shares[cpu] = sum(used[mode] for mode in modes) / total
        if not shares:
            raise Unknown("/proc/stat did not change")
        return shares

    def pressure(self, resource: str) -> float:
        """Return the share of the window in which some task waited for a resource."""
        before, after = map(stalled_us, self.ends(f"/proc/pressure/{resource}"))
        return min(1.0, (after - before) / 1e6 / self.window_s)

    @property
    def interface(self) -> Raw:
        """What ip(8) says of the interface under test."""
        if self.raw["interface"] is None:
            failed = self.raw["failed"].get("interface")
            raise Unknown(failed) if failed else self.reason("ip -json -details address show")
        return self.raw["interface"]

    @property
    def kind(self) -> str:
        """The interface's kind as ip-link(8) has it; "" for hardware."""
        return self.interface.get("linkinfo", {}).get("info_kind", "")

    def ethtool(self, what: str) -> Any:
        """Return the driver's answer to a request."""
        if self.interface and what not in self.raw["ethtool"]:
            raise self.reason(f"ethtool {what}")
        return self.raw["ethtool"][what]

    @property
    def device(self) -> str:
        """The interface's folder in /sys; unknown if /sys shows another namespace."""
        folder = f"/sys/class/net/{self.interface['ifname']}/"
        if folder in self.raw["failed"]:
            raise Unknown(self.raw["failed"][folder])
        return folder


class PrintedLink:
    """The JSON that `link_probe call` printed."""

    def __init__(self, raw: Raw):
        self.raw = raw

    def __getitem__(self, key: str) -> Any:
        if failed := self.raw.get("failed"):
            raise Unknown(failed)
        return self.raw[key]

    @property
    def trips_s(self) -> list[float]:
        """The round trips, sorted."""
        return sorted(trip_ns / 1e9 for trip_ns in self["round_trips_ns"])
