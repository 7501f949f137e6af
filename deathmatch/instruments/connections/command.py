"""What does a connection cost the kernel? `./shell deathmatch connections NAME`.

Holds many connections between two namespaces of this machine, brings them through every state, and
reads what the kernel's caches grew by. Each life runs in a sandbox of its own, which ends with this
process: it sets nothing outside, so nothing has to be restored.
"""

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

import psutil

from deathmatch.errors import UserError
from deathmatch.instruments.connections import run
from deathmatch.instruments.connections.kernel_memory import PAGE_BYTES
from deathmatch.instruments.connections.states import LIVES
from deathmatch.instruments.instrument import Instrument, Plan, Row, sysctl
from deathmatch.instruments.serving import TESTBED
from deathmatch.plan import files

HELD_LIFE, HELD_REPETITIONS = "whole", 3
# In the most costly state, with what both ends' processes hold for it.
BYTES_EACH = 12_000
# What a life takes on an idle machine, without and for its connections.
LIFE_S, CONNECTION_S = 4, 2e-4
# Both ends of a connection are files of one kernel; other programs need some too.
FILES_EACH, FILES_SHARE = 2, 0.8
# Above it, the kernel takes memory back from sockets (ip-sysctl, tcp_mem).
TCP_SHARE = 0.8


@dataclass(frozen=True)
class Reading:
    """A life to run."""

    life: str
    connections: int
    repetition: int

    def __str__(self) -> str:
        """Return what it is, for progress and errors."""
        return f"life {self.life}, {self.connections:,} connections, repetition {self.repetition}"


class Connections(Instrument):
    """The instrument."""

    def plan(self, options: argparse.Namespace) -> Plan:
        """Return every life; print what limits them."""
        if not 0 < options.memory_share <= 1:
            what = "it must be more than 0 and at most 1"
            raise UserError(what, "--memory-share", "such as 0.3")
        most, limit = most_connections(options.memory_share)
        in_each_state, held = min(options.connections, most), min(options.held, most)
        if most < max(options.connections, options.held):
            print(f"at most {most:,} connections: {limit}")
        if not os.access(run.SLABINFO, os.R_OK):
            print(f"only root may read {run.SLABINFO}: what the kernel's caches hold is left out; "
                  "the differences of /proc/meminfo are of the whole machine")  # fmt: skip
        lives = readings(in_each_state, held, options.repetitions)
        return Plan(
            lives,
            f"{in_each_state:,} connections in each state, {options.repetitions} times; {held:,} "
            f"held at once, {HELD_REPETITIONS if held else 0} times; "
            f"{max(in_each_state, held) * BYTES_EACH / 1e9:.1f} GB at most",
            sum(LIFE_S + CONNECTION_S * life.connections for life in lives),
        )

    def take(self, reading: Reading, options: argparse.Namespace, out: Path) -> list[Row]:
        """Return what was read in each state of a life (`run.life`)."""
        return run.life(reading.life, reading.connections, files.testbed(TESTBED))


main = Connections("connections", {"connections": 1, "held": 0}).main


def readings(in_each_state: int, held: int, repetitions: int) -> list[Reading]:
    """Return every life of every repetition, and then those with as many as can be held."""
    lives = [
        Reading(life, in_each_state, repetition)
        for repetition in range(1, repetitions + 1)
        for life in LIVES
    ]
    held_repetitions = HELD_REPETITIONS if held else 0
    return lives + [Reading(HELD_LIFE, held, n + 1) for n in range(held_repetitions)]


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
