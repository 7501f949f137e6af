"""What of the disk a run may take: estimated before it starts, and compared with what is free.

In: the trials that are left, and the servers that are not built yet.
"""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from deathmatch.capacity_search import search
from deathmatch.errors import UserError
from deathmatch.plan.server import Server
from deathmatch.plan.trial import Trial
from deathmatch.run import build_kinds

POINT_BYTES = {"httperf": 300_000, "roundtrip": 50_000, "wsload": 300_000}
"""The logs and samples of a client at one rate: 19 of 20 points of data/reference have less."""

STORED_BYTES = 10_000
"""The same for a trial without a client."""

EVENT_BYTES = 64
"""A message in wsload's records, which go once a trial has ended."""

BUILD_BYTES = {
    "go": 400_000_000, "npm": 400_000_000, "cargo": 310_000_000, "maven": 130_000_000,
    "pypi": 240_000_000,
}  # fmt: skip
"""A server's build, by the registry of its packages: the largest that was seen of each kind."""

UNPACKED_BYTES = 60_000_000
"""A build that unpacks a release of another Debian."""

OWN_BYTES = 12_000_000
"""A build of a server's own sources alone."""

PAPER_BYTES = 50_000_000
"""Tables, figures, notebooks and both papers."""

REMEDY = "make room, or choose less by servers= or experiments="


@dataclass(frozen=True)
class Need:
    """What a run may take: bytes for each of its folders, and what they are for."""

    bytes_of: dict[str, int]
    trials: int
    builds: int

    @property
    def total_bytes(self) -> int:
        """The sum over all folders."""
        return sum(self.bytes_of.values())


def needed(trials: Iterable[Trial], unbuilt: Iterable[Server]) -> Need:
    """Return what a run may take for the trials that are left, the builds and the paper."""
    left, builds = list(trials), [build_bytes(server) for server in unbuilt]
    data = sum(map(_lasting, left)) + max(map(_passing, left), default=0)
    by_folder = {"data": data, "build": sum(builds), "paper": PAPER_BYTES}
    return Need(by_folder, len(left), len(builds))


def build_bytes(server: Server) -> int:
    """Return what the build of a server may take."""
    return build_kinds.largest(server, BUILD_BYTES, UNPACKED_BYTES, OWN_BYTES)


def _lasting(trial: Trial) -> int:
    client = trial.experiment.client
    if client is None:
        return STORED_BYTES
    probes = search.usual(trial.search)[0] if trial.search else 0
    return (len(trial.plan.rates_rps or ()) + probes) * POINT_BYTES[client]


def _passing(trial: Trial) -> int:
    """Return what a trial takes only while it goes on."""
    if trial.experiment.client != "wsload":
        return 0
    return round(sum(trial.plan.rates_rps or ()) * (trial.duration_s or 0) * EVENT_BYTES)


def line(need: Need, root: Path = Path()) -> str:
    """Return the line that says what a run may take of the disk, and what is free there."""
    counts = {"trial": need.trials, "build": need.builds}
    parts = [f"{count} {what}{'s' if count > 1 else ''}" for what, count in counts.items() if count]
    what = " and ".join([*filter(None, [", ".join(parts)]), "the paper"])
    disks = _disks(need, root)
    short = [disk for disk in disks if disk.free_bytes < disk.need_bytes]
    free = min(disk.free_bytes for disk in short or disks)
    more = f", which may not do: {REMEDY}" if short else ""
    return f"disk: up to {_size(need.total_bytes)} for {what}; {_size(free)} are free{more}"


def check(need: Need, root: Path = Path()) -> None:
    """Raise UserError if not even half of what a run may take is free."""
    for disk in _disks(need, root):
        if disk.free_bytes < disk.need_bytes / 2:
            raise UserError(
                f"this run may take {_size(disk.need_bytes)} of disk, and "
                f"{_size(disk.free_bytes)} are free",
                str(disk.folder.absolute()),
                f"{REMEDY}; finished trials are kept, and `rm -r build/servers` gives back what "
                "can be built again",
            )


@dataclass(frozen=True)
class _Disk:
    folder: Path
    need_bytes: int
    free_bytes: int


def _disks(need: Need, root: Path) -> list[_Disk]:
    """Return the file systems that the folders are on, with what is needed and free on each."""
    disks: dict[int, _Disk] = {}
    for name, count in need.bytes_of.items():
        folder = root / name if (root / name).is_dir() else root
        device = folder.stat().st_dev
        other = disks.get(device, _Disk(folder, 0, shutil.disk_usage(folder).free))
        disks[device] = replace(other, need_bytes=other.need_bytes + count)
    return list(disks.values())


def _size(count: float) -> str:
    """Return "1.2 GB", or whole MB below one."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{max(1, round(count / 1e6))} MB"
