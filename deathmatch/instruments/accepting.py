"""How long does a connection wait to be accepted, and who is woken? `deathmatch accepting NAME`.

Offers connections to the C server `acceptors`, which counts its own waits and switches, and reads
from the kernel's time stamps how long each request was there before it was read. Writes
data/accepting/NAME.json. Each reading runs in a sandbox of its own.
"""

import argparse
import itertools
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from deathmatch.errors import UserError
from deathmatch.hosts.testbed import Testbed
from deathmatch.instruments import instrument
from deathmatch.plan import matrix
from deathmatch.plan.root import ROOT
from deathmatch.plan.trial import Trial

KIND = "accepting"
TESTBED, DATASET, EXPERIMENT, SERVER = "netns", "tour", "accept-queue", "acceptors"
# Who is woken: nothing but to accept and to answer, by so many threads.
HERDS, THREADS, HERD_RPS, DEEP = ("herd", "several", "reuseport"), (1, 4, 16), 5000, 4096
# How long a request waits: some 4,400 a second are served, so half, nearly all, and too many.
WORK_US, BACKLOGS, RATES_RPS = 200, (8, 32, 128, 512), (2000, 4000, 6000)
# As servers/acceptors/acceptors.c has it.
MOST_THREADS = 64
# Beside the load: namespaces, start, stop, and the client's patience.
AROUND_S = 4


@dataclass(frozen=True)
class Reading:
    """One to take, as the server is run."""

    accept: str
    threads: int
    backlog: int
    work_us: int
    rate_rps: int
    repetition: int

    def __str__(self) -> str:
        """Return what it is, for progress and errors."""
        own = f"{self.accept}, {self.threads} threads, backlog {self.backlog}"
        return f"{own}, {self.rate_rps:,} req/s"


def main(given: argparse.Namespace) -> int:
    """Measure as the command line says; return the exit status."""
    os.chdir(ROOT)
    if given.inside:
        _inside(given)
        return 0
    check(given)
    threads, backlogs = given.threads or THREADS, given.backlog or BACKLOGS
    planned = list(plan(threads, backlogs, given.repetitions))
    return instrument.measure(KIND, given, planned, SERVER, EXPERIMENT, AROUND_S)


def check(given: argparse.Namespace) -> None:
    """Raise UserError for a name that is no file's, or a number that makes no sense."""
    instrument.check_name(given.name)
    instrument.check_least(given, repetitions=1, duration_s=1)
    for option, values, most in (
        ("--threads", given.threads, MOST_THREADS), ("--backlog", given.backlog, DEEP),
    ):  # fmt: skip
        if not all(1 <= value <= most for value in values):
            raise UserError(f"it must be from 1 to {most}", option, "give another number")


def plan(threads: Sequence[int], backlogs: Sequence[int], repetitions: int) -> Iterator[Reading]:
    """Return every reading, those of a repetition in an order that is drawn for it."""

    def each(repetition: int) -> list[Reading]:
        herds = [
            Reading(way, count, DEEP, 0, HERD_RPS, repetition)
            for way, count in itertools.product(HERDS, dict.fromkeys(threads))
        ]
        queues = [
            Reading("one", 1, backlog, WORK_US, rate_rps, repetition)
            for backlog, rate_rps in itertools.product(dict.fromkeys(backlogs), RATES_RPS)
        ]
        return herds + queues

    return instrument.drawn(each, repetitions)


def trial() -> Trial:
    """Return a trial of the server on one CPU."""
    return next(
        one for one in matrix.possible(DATASET, [EXPERIMENT])
        if one.server.name == SERVER and one.variant.factors["schedulers"] == "one"
    )  # fmt: skip


def _inside(given: argparse.Namespace) -> None:
    # Only here, as what measures loads slowly.
    from deathmatch.instruments import accepted as measure

    asked = json.loads(given.name)
    one = trial()

    def reading(bed: Testbed, out: Path) -> dict:
        return measure.reading(one, bed, asked, asked["rate_rps"], given.duration_s, out)

    instrument.take(given.inside, reading, TESTBED, one.spec()["sysctl"])
