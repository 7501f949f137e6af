"""What does a connection cost the kernel? `./shell deathmatch connections NAME`.

Holds many connections between two namespaces of this machine, brings them through every state, and
writes what the kernel's caches grew by to data/connections/NAME.json. Each life runs in a sandbox
of its own, which ends with this process: it sets nothing outside, so nothing has to be restored.
"""

import argparse
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass

import psutil

from deathmatch.errors import UserError
from deathmatch.instruments import instrument
from deathmatch.instruments.connections import run
from deathmatch.instruments.connections.kernel_memory import PAGE_BYTES
from deathmatch.instruments.connections.states import LIVES
from deathmatch.instruments.instrument import sysctl
from deathmatch.plan import files

KIND = "connections"
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
    instrument.keep(KIND, given.name, instrument.about(), readings(rounds))
    return 0


def check(given: argparse.Namespace) -> None:
    """Raise UserError for a name that is no file's, or a number that makes no sense."""
    instrument.check_name(given.name)
    instrument.check_least(given, connections=1, held=0, repetitions=1)
    if not 0 < given.memory_share <= 1:
        raise UserError("it must be more than 0 and at most 1", "--memory-share", "such as 0.3")


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
    with instrument.folder() as folder:
        for number, one in enumerate(rounds, 1):
            file = folder / f"{number}.json"
            words = [one.life, "--connections", str(one.connections)]
            status = instrument.inside(KIND, words, file)
            if status != 0:
                raise UserError(
                    f"{one.connections} connections were not held (exit status {status})",
                    f"life {one.life}, repetition {one.repetition}", run.FEWER,
                )  # fmt: skip
            print(f"  {number} of {len(rounds)}: {one.life}, {one.connections:,}", flush=True)
            for found in json.loads(file.read_text()):
                yield {"life": one.life, "repetition": one.repetition, **found}
