"""Where do a request's microseconds go? `./shell deathmatch profile NAME`.

Samples the call chains of the C server `c-readiness` with perf(1), for each readiness mechanism,
with none, 900 and 8,000 idle connections, at a low and a higher rate, and writes
data/profile/NAME.json. Each reading runs in a sandbox of its own.
"""

import argparse
import itertools
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from deathmatch.errors import UserError
from deathmatch.hosts.testbed import Testbed
from deathmatch.instruments import instrument
from deathmatch.plan import files, matrix
from deathmatch.plan.root import ROOT
from deathmatch.plan.trial import Trial, Variant

KIND = "profile"
TESTBED, DATASET, EXPERIMENT, SERVER = "netns", "tour", "readiness", "c-readiness"
MECHANISMS = ("select", "poll", "epoll", "io_uring")
IDLE, RATES_RPS = (0, 900, 8000), (200, 2000)
# The C library's set of descriptors has room for 1,024.
SELECT_IDLE = 900
# Beside the load: namespaces, idle connections, start, warm-up, reading the samples.
AROUND_S = 8
PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")


@dataclass(frozen=True)
class Reading:
    """One to take."""

    mechanism: str
    idle: int
    rate_rps: int
    repetition: int

    def __str__(self) -> str:
        """Return what it is, for progress and errors."""
        return f"{self.mechanism}, {self.idle:,} idle, {self.rate_rps:,} req/s"


def main(given: argparse.Namespace) -> int:
    """Measure as the command line says; return the exit status."""
    os.chdir(ROOT)
    if given.inside:
        _inside(given)
        return 0
    check(given)
    planned = list(plan(given.mechanism or MECHANISMS, given.idle or IDLE, given.repetitions))
    return instrument.measure(KIND, given, planned, SERVER, EXPERIMENT, AROUND_S)


def check(given: argparse.Namespace) -> None:
    """Raise UserError for a name that is no file's, a number that makes no sense, or no perf."""
    instrument.check_name(given.name)
    instrument.check_least(given, repetitions=1, duration_s=1)
    known = files.experiment(EXPERIMENT).factors["idle_connections"].levels
    for count in given.idle:
        if count not in known:
            what = f"the experiment has no {count} idle connections"
            raise UserError(what, "--idle", f"give one of {', '.join(map(str, known))}")
    if not shutil.which("perf"):
        remedy = "install it: Debian has it in linux-perf; nixpkgs was not tried"
        raise UserError("there is no program perf", "PATH", remedy)
    if os.geteuid() != 0 and int(PARANOID.read_text()) > 1:
        raise UserError("the kernel's functions may be seen by root only", str(PARANOID), "be root")


def plan(mechanisms: Sequence[str], idle: Sequence[int], repetitions: int) -> Iterator[Reading]:
    """Return every reading, those of a repetition in an order that is drawn for it."""

    def each(repetition: int) -> list[Reading]:
        return [
            Reading(mechanism, count, rate_rps, repetition)
            for mechanism, count, rate_rps in itertools.product(
                dict.fromkeys(mechanisms), dict.fromkeys(idle), RATES_RPS
            )
            if mechanism != "select" or count <= SELECT_IDLE
        ]

    return instrument.drawn(each, repetitions)


def trial(mechanism: str, idle: int) -> Trial:
    """Return the trial of the server with this mechanism and so many idle connections."""
    one = next(
        one for one in matrix.possible(DATASET, [EXPERIMENT]) if one.server.name == SERVER
    )  # fmt: skip
    factors = one.variant.factors | {"readiness": mechanism, "idle_connections": idle}
    return one.model_copy(update={"variant": Variant(factors=factors)})


def _inside(given: argparse.Namespace) -> None:
    # Only here, as what measures loads slowly.
    from deathmatch.instruments import sampled as measure

    asked = Reading(**json.loads(given.name))
    one = trial(asked.mechanism, asked.idle)

    def reading(bed: Testbed, out: Path) -> dict:
        return measure.reading(one, bed, asked.rate_rps, given.duration_s, out)

    instrument.take(given.inside, reading, TESTBED, one.spec()["sysctl"])
