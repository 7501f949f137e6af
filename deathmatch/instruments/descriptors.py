"""What does a wait cost, by the number of idle descriptors? `./shell deathmatch descriptors NAME`.

Times select(2), poll(2) and epoll_wait(2) over more and more idle connections (`waits`).
"""

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

from deathmatch.hosts import testbed
from deathmatch.instruments import waits
from deathmatch.instruments.instrument import Instrument, Plan, Row, drawn

# Up to what a process may have where the limit of open files is 20,000.
IDLE = (0, 16, 64, 250, 500, 1000, 2000, 4000, 8000, 16000)
# What a life takes on an idle machine: opening each connection, all waits over it.
LIFE_S, CONNECTION_S = 1.5, 4e-4


@dataclass(frozen=True)
class Reading:
    """A life of a process and its connections."""

    repetition: int = 1

    def __str__(self) -> str:
        """Return what it is, for progress and errors."""
        return f"repetition {self.repetition}"


class Descriptors(Instrument):
    """The instrument."""

    def plan(self, options: argparse.Namespace) -> Plan:
        """Return every life."""
        idle = levels(options.most)
        if idle != [count for count in IDLE if count <= options.most]:
            able = waits.most_idle()
            print(f"at most {idle[-1]:,} descriptors: the limit of open files leaves {able:,}")
        return Plan(
            drawn([Reading()], options.repetitions),
            f"{options.repetitions} lives of up to {idle[-1]:,} idle connections",
            options.repetitions * (LIFE_S + CONNECTION_S * sum(idle)),
            {"cache_bytes": waits.CACHE_BYTES, "sleep_s": waits.SLEEP_S},
        )

    def take(self, reading: Reading, options: argparse.Namespace, out: Path) -> list[Row]:
        """Return the rows of a life (`waits.life`)."""
        available = sorted(os.sched_getaffinity(0))
        cpus = {side: testbed.cpus(which, available) for side, which in
                (("server", "first"), ("client", "last"))}  # fmt: skip
        return waits.life(levels(options.most), reading.repetition, cpus)


main = Descriptors("descriptors", {"most": IDLE[1]}).main


def levels(most: int) -> list[int]:
    """Return the numbers of idle descriptors up to `most` that this process may have."""
    able = waits.most_idle()
    return [count for count in IDLE if count <= min(most, able)]
