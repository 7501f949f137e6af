"""What does a connection cost the kernel? `./shell deathmatch connections NAME`.

Holds many connections between two namespaces of this machine, brings them through every state, and
writes what the kernel's caches grew by to data/connections/NAME.json. Each life runs in a sandbox
of its own, which ends with this process: it sets nothing outside, so nothing has to be restored.
"""

import argparse
import datetime
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from deathmatch.errors import UserError
from deathmatch.hosts import sandbox
from deathmatch.hosts.host import Local
from deathmatch.hosts.site import Here
from deathmatch.measure import machine
from deathmatch.measure.connections import run
from deathmatch.measure.connections.kernel_memory import PAGE_BYTES
from deathmatch.measure.connections.states import LIVES
from deathmatch.plan import files
from deathmatch.plan.root import ROOT

FOLDER = ROOT / "data" / "connections"
BUILD = ROOT / "build"
TESTBED = "netns"
HELD_LIFE, HELD_REPETITIONS = "whole", 3
# In the most costly state, with what both ends' processes hold for it.
BYTES_EACH = 12_000
# What a life takes on an idle machine, beside its connections.
LIFE_S, CONNECTION_S = 4, 2e-4
# Both ends of a connection are files of one kernel; others need some too.
FILES_EACH, FILES_SHARE = 2, 0.8
# Above it, the kernel takes memory back from sockets (ip-sysctl, tcp_mem).
TCP_SHARE = 0.8
LIMITS = ("fs.file-max", "fs.nr_open", "net.ipv4.tcp_mem")


@dataclass(frozen=True)
class Round:
    """One life to run."""

    life: str
    connections: int
    repetition: int


def main(given: argparse.Namespace) -> int:
    """Measure as the command line says; return the exit status."""
    if given.inside:
        life, connections = given.name, given.connections
        found = run.life(life, connections, files.testbed(TESTBED))
        given.inside.write_text(json.dumps(found))
        return 0
    check(given)
    most, limited = most_connections(given.memory_share)
    each, held = min(given.connections, most), min(given.held, most)
    if each < given.connections or held < given.held:
        print(f"at most {most:,} connections: {limited}")
    if not slabs_readable():
        print(f"{run.SLABINFO} may be read by root alone: what the kernel's caches hold is left "
              "out; the differences of /proc/meminfo are of the whole machine")  # fmt: skip
    rounds = list(planned(each, held, given.repetitions))
    print(f"{each:,} connections in each state, {given.repetitions} times; {held:,} held at once, "
          f"{HELD_REPETITIONS if held else 0} times; {expected_s(rounds) / 60:.0f} min or more, "
          f"{max(each, held) * BYTES_EACH / 1e9:.1f} GB at most", flush=True)  # fmt: skip
    record: dict = {"about": about(), "readings": []}
    try:
        for found in readings(rounds):
            record["readings"].append(found)
    finally:
        # What was measured before a life that failed, or an interrupt, is kept.
        if record["readings"]:
            write(FOLDER / f"{given.name}.json", record)
    return 0


def check(given: argparse.Namespace) -> None:
    """Raise UserError for a name that is no file's, or a number that makes no sense."""
    if not re.fullmatch(r"[\w.-]*\w", given.name):
        raise UserError(
            f"{given.name!r} is no name of a file", remedy="use letters, digits, - and _"
        )
    least = {"connections": 1, "held": 0, "repetitions": 1}
    for name, lowest in least.items():
        if getattr(given, name) < lowest:
            raise UserError(f"it must be {lowest} or more", f"--{name}", "give a larger number")
    if not 0 < given.memory_share <= 1:
        raise UserError("it must be more than 0 and at most 1", "--memory-share", "such as 0.3")


def write(out: Path, record: dict) -> None:
    """Write the record aside, then give it its name, which it says."""
    out.parent.mkdir(parents=True, exist_ok=True)
    aside = out.with_name(f".{out.name}.part")
    aside.write_text(text(record))
    aside.replace(out)
    print(out.relative_to(ROOT))


def most_connections(memory_share: float) -> tuple[int, str]:
    """Return how many connections this machine may hold now, and what limits them."""
    memory = psutil.virtual_memory()
    files_max, files_now = (sysctl(name).split()[0] for name in ("fs.file-max", "fs.file-nr"))
    # Only the machine's own network namespace shows it; this is the kernel's default (tcp_init).
    tcp_pages = sysctl("net.ipv4.tcp_mem").split() or [0, memory.total / 16 / PAGE_BYTES]
    limits = {
        f"{memory_share:.4g} of the {memory.available / 1e9:.1f} GB that are available, "
        f"{BYTES_EACH:,} bytes each (--memory-share)": memory.available * memory_share / BYTES_EACH,
        "fs.file-max": (int(files_max) - int(files_now)) * FILES_SHARE / FILES_EACH,
        "net.ipv4.tcp_mem": float(tcp_pages[1]) * TCP_SHARE,
    }
    which = min(limits, key=limits.get)
    return int(limits[which]), which


def sysctl(name: str) -> str:
    """Return a setting's value, empty where it is not to be seen."""
    try:
        return " ".join(Path("/proc/sys", *name.split(".")).read_text().split())
    except FileNotFoundError:
        return ""


def slabs_readable() -> bool:
    """Return whether this user may read the kernel's caches."""
    return os.access(run.SLABINFO, os.R_OK)


def planned(each: int, held: int, repetitions: int) -> Iterator[Round]:
    """Return every life of every repetition, and then those with as many as can be held."""
    for repetition in range(1, repetitions + 1):
        yield from (Round(life, each, repetition) for life in LIVES)
    if held:
        yield from (Round(HELD_LIFE, held, n + 1) for n in range(HELD_REPETITIONS))


def expected_s(rounds: list[Round]) -> float:
    """Return what the rounds take on an idle machine, in s."""
    return sum(LIFE_S + CONNECTION_S * each.connections for each in rounds)


def readings(rounds: list[Round]) -> Iterator[dict]:
    """Run each life in a sandbox and return its readings; UserError if one fails."""
    # Not in /tmp, which may be a folder of /run: the sandbox has one of its own.
    BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD) as folder:
        for number, one in enumerate(rounds, 1):
            file = Path(folder, f"{number}.json")
            words = ["connections", one.life, "--connections", str(one.connections)]
            status = sandbox.run(
                [sys.executable, "-m", "deathmatch", *words, "--inside", str(file)]
            )
            if status != 0:
                raise UserError(
                    f"{one.connections} connections were not held (exit status {status})",
                    f"life {one.life}, repetition {one.repetition}", run.FEWER,
                )  # fmt: skip
            print(f"  {number} of {len(rounds)}: {one.life}, {one.connections:,}", flush=True)
            for found in json.loads(file.read_text()):
                yield {"life": one.life, "repetition": one.repetition, **found}


def about() -> dict:
    """Return the machine, its limits and the date, for the record."""
    return {
        **{
            key: value
            for key, value in machine.about(Local(), Here()).items()
            if key != "snakemake"
        },
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "limits": {name: sysctl(name) for name in LIMITS},
    }


def text(record: dict) -> str:
    """Return the record as JSON with a line for each reading, so that two can be compared."""
    lines = ",\n".join(f"  {json.dumps(one)}" for one in record["readings"])
    return f'{{\n"about": {json.dumps(record["about"], indent=1)},\n"readings": [\n{lines}\n]\n}}\n'
