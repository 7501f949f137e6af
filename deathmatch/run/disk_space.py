"""What of the disk a run may take: estimated before it starts, and compared with what is free.

In: the trials that are left, the servers that are not built yet, and the finished trials' folders.
"""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from deathmatch.capacity_search import search
from deathmatch.errors import UserError
from deathmatch.plan.server import Server
from deathmatch.plan.trial import Trial

POINT_BYTES = {"httperf": 300_000, "roundtrip": 50_000, "wsload": 300_000}
"""Of a client's logs and samples at one rate: 19 of 20 points of data/reference have less."""

STORED_BYTES = 10_000
"""Of a trial without a client, likewise."""

EVENT_BYTES = 64
"""Of a message in wsload's records, which go once a trial has ended."""

BUILD_BYTES = {
    "go": 400_000_000, "npm": 400_000_000, "cargo": 310_000_000, "maven": 130_000_000,
    "pypi": 240_000_000,
}  # fmt: skip
"""Of a server's build, by the registry of its packages: the largest that was seen of each kind."""

UNPACKED_BYTES = 60_000_000
"""Of a build that unpacks a release of another Debian."""

OWN_BYTES = 12_000_000
"""Of a build of a server's own sources alone."""

PAPER_BYTES = 50_000_000
"""Of tables, figures, notebooks and both papers."""

# Of so many finished trials of a client are the sizes looked at, to know what a point takes.
ENOUGH_TRIALS, MOST_TRIALS = 3, 30


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


def of(left: Iterable[Trial], done: Iterable[Trial], unbuilt: Iterable[Server]) -> Need:
    """Return what a run may take for the trials that are `left`, the builds and the paper.

    Of a client of which some are `done` and in their folders, these tell how large a point is.
    """
    left, unbuilt = list(left), list(unbuilt)
    known = _measured(done)
    lasting = sum(_lasting(trial, known) for trial in left)
    passing = max(map(_passing, left), default=0)
    builds = sum(map(build_bytes, unbuilt))
    return Need({"data": lasting + passing, "build": builds, "paper": PAPER_BYTES}, len(left),
                len(unbuilt))  # fmt: skip


def build_bytes(server: Server) -> int:
    """Return what the build of a server may take."""
    named = [size for key, size in BUILD_BYTES.items() if getattr(server.packages, key, None)]
    build = server.build or ""
    if "cargo build" in build:
        named.append(BUILD_BYTES["cargo"])
    if "toolchains/debian" in build:
        named.append(UNPACKED_BYTES)
    return max(named, default=OWN_BYTES)


def _rates(trial: Trial) -> int:
    probes = search.usual(trial.search)[0] if trial.search else 0
    return len(trial.plan.rates_rps or ()) + probes


def _lasting(trial: Trial, known: dict[str, float]) -> int:
    client = trial.experiment.client
    if client is None:
        return STORED_BYTES
    return round(_rates(trial) * known.get(client, POINT_BYTES[client]))


def _passing(trial: Trial) -> int:
    """Return what a trial takes only while it goes on."""
    if trial.experiment.client != "wsload":
        return 0
    return round(sum(trial.plan.rates_rps or ()) * (trial.duration_s or 0) * EVENT_BYTES)


def _measured(done: Iterable[Trial]) -> dict[str, float]:
    """Return the bytes of a point, by client, of the clients of which enough trials are there."""
    sizes: dict[str, list[float]] = {}
    for trial in done:
        of_client = sizes.setdefault(trial.experiment.client or "", [])
        if len(of_client) < MOST_TRIALS and trial.path.is_dir() and _rates(trial):
            size = sum(file.stat().st_size for file in trial.path.rglob("*") if file.is_file())
            of_client.append(size / _rates(trial))
    return {
        client: sum(each) / len(each)
        for client, each in sizes.items()
        if len(each) >= ENOUGH_TRIALS
    }


def told(need: Need, root: Path = Path()) -> str:
    """Return the line that says what a run may take of the disk, and what is free there."""
    parts = []
    if need.trials:
        parts.append(f"{need.trials} trial{'s' if need.trials > 1 else ''}")
    if need.builds:
        parts.append(f"{need.builds} build{'s' if need.builds > 1 else ''}")
    parts.append("the paper")
    what = " and ".join([", ".join(parts[:-1]), parts[-1]]) if parts[:-1] else parts[-1]
    short = [one for one in _disks(need, root) if one.free_bytes < one.need_bytes]
    free = min(one.free_bytes for one in (short or _disks(need, root)))
    more = ", which may not do: make room, or choose less by servers= or experiments=" * bool(short)
    return f"disk: up to {_size(need.total_bytes)} for {what}; {_size(free)} are free{more}"


def check(need: Need, root: Path = Path()) -> None:
    """Raise UserError if not even half of what a run may take is free."""
    for one in _disks(need, root):
        if one.free_bytes < one.need_bytes / 2:
            raise UserError(
                f"this run may take {_size(one.need_bytes)} of disk, and {_size(one.free_bytes)} "
                "are free",
                str(one.folder.absolute()),
                "make room, or choose less by servers= or experiments=; finished trials are kept, "
                "and `rm -r build/servers` gives back what can be built again",
            )


@dataclass(frozen=True)
class _Disk:
    folder: Path
    need_bytes: int
    free_bytes: int


def _disks(need: Need, root: Path) -> list[_Disk]:
    """Return the file systems that the folders are on, with what is needed and free on each."""
    found: dict[int, _Disk] = {}
    for name, needed in need.bytes_of.items():
        folder = root / name if (root / name).is_dir() else root
        device = folder.stat().st_dev
        before = found[device].need_bytes if device in found else 0
        folder = found[device].folder if device in found else folder
        found[device] = _Disk(folder, before + needed, shutil.disk_usage(folder).free)
    return list(found.values())


def _size(count: float) -> str:
    """Return "1.2 GB", or whole MB below one."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{max(1, round(count / 1e6))} MB"
