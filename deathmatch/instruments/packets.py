"""Who pays for packets? `./shell deathmatch packets NAME`.

Measures the CPU time of a few servers for the same rate of connections, with the kernel's work on
packets charged in each of the ways of `hosts.packets`, and writes data/packets/NAME.json. Each
reading runs in a sandbox of its own. The kernel's threads are seen from outside of it only: this
process pins each to the CPUs of its side and reads what it has run.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from deathmatch.errors import UserError
from deathmatch.hosts import packets, testbed
from deathmatch.hosts.host import Local
from deathmatch.hosts.testbed import Testbed
from deathmatch.instruments import instrument
from deathmatch.plan import files, matrix
from deathmatch.plan.root import ROOT
from deathmatch.plan.trial import BACKLOG, Trial

KIND = "packets"
TESTBED = "netns"
# What costs little but packets, and event loops in C, Erlang and Python.
SERVERS = ("null", "nginx", "yucan", "tornado")
# The dataset that has every server; the first experiment of these that a server is in.
DATASET, EXPERIMENTS = "tour", ("static", "backlog", "single-thread", "dynamic")
LOOK_S = 0.02
# Beside the load: namespaces, start, warm-up, stop.
AROUND_S = 4.5
# A machine that stood still for a moment loses some connections; a rate that is too high, always.
TRIES = 5


@dataclass(frozen=True)
class Reading:
    """One to take."""

    server: str
    mode: str
    repetition: int


@dataclass
class Threads:
    """The kernel's threads for packets of the sandbox that runs, and what they ran so far.

    A context manager: a thread looks every LOOK_S meanwhile.
    """

    cpus: dict[str, list[int]]
    # Side, when it was looked at, what had run by then, in ns of the monotonic clock.
    seen: list[tuple[str, int, int]] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)
    _known: dict[int, str | None] = field(default_factory=dict)

    def __enter__(self) -> "Threads":
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def between_ns(self, side: str, began_ns: int, ended_ns: int) -> int | None:
        """Return what a side's threads ran from one moment to another; None if it had none."""
        looks = [(at_ns, ran_ns) for name, at_ns, ran_ns in self.seen if name == side]
        before = [ran_ns for at_ns, ran_ns in looks if at_ns <= began_ns]
        until = [ran_ns for at_ns, ran_ns in looks if at_ns <= ended_ns]
        return until[-1] - before[-1] if before else None

    def _look(self) -> None:
        while not self._ended.wait(LOOK_S):
            pids = {int(name) for name in os.listdir("/proc") if name.isdigit()}
            self._known = {pid: self._known.get(pid) or self._side(pid) for pid in pids}
            for pid, name in self._known.items():
                if name:
                    # It ends with its interface.
                    with contextlib.suppress(OSError):
                        ran_ns = int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
                        self.seen.append((name, time.monotonic_ns(), ran_ns))

    def _side(self, pid: int) -> str | None:
        try:
            found = packets.side(Path(f"/proc/{pid}/comm").read_text())
            if found:
                os.sched_setaffinity(pid, self.cpus[found])
            return found
        except OSError:
            return None


def main(given: argparse.Namespace) -> int:
    """Measure as the command line says; return the exit status."""
    os.chdir(ROOT)
    if given.inside:
        _inside(given)
        return 0
    check(given)
    names = tuple(dict.fromkeys(given.server or SERVERS))
    for name in names:
        # UserError before anything is built.
        trial(name)
    planned = list(plan(names, given.repetitions))
    versions = {name: instrument.built(KIND, name, EXPERIMENTS[0]) for name in names}
    expected_s = len(planned) * (given.duration_s + AROUND_S)
    print(f"{len(planned)} readings of {given.rate:,} connections a second: "
          f"{expected_s / 60:.0f} min or more", flush=True)  # fmt: skip
    cpus = Local().affinity()
    sides = {"server": testbed.cpus("first", cpus), "client": testbed.cpus("last", cpus)}
    # This process, which looks, is not to be measured.
    os.sched_setaffinity(0, sides["client"])
    about = instrument.about() | {"rate_rps": given.rate, "duration_s": given.duration_s}
    about["versions"] = versions
    instrument.keep(KIND, given.name, about, readings(planned, given, sides))
    return 0


def check(given: argparse.Namespace) -> None:
    """Raise UserError for a name that is no file's, or a number that makes no sense."""
    instrument.check_name(given.name)
    instrument.check_least(given, rate=1, duration_s=1, repetitions=1)


def plan(servers: Sequence[str], repetitions: int) -> Iterator[Reading]:
    """Return every reading, those of a repetition in an order that is drawn for it."""

    def each(repetition: int) -> list[Reading]:
        return [Reading(name, mode, repetition) for name in servers for mode in packets.MODES]

    return instrument.drawn(each, repetitions)


def trial(server: str) -> Trial:
    """Return the trial whose settings a server is run with; UserError if it has none."""
    named = files.server(server)
    experiment = next((name for name in EXPERIMENTS if name in named.experiments), None)
    if experiment is None:
        what = f"server {server!r} is in no experiment whose connections may carry one request"
        raise UserError(what, "--server", "take one that is in " + " or ".join(EXPERIMENTS))
    found = [
        one for one in matrix.possible(DATASET, [experiment])
        if one.server.name == server and one.n == 1
    ]  # fmt: skip
    if not found:
        raise UserError(f"dataset {DATASET!r} has no trial of server {server!r}", "--server")
    return max(found, key=lambda one: (one.variant.factors.get(BACKLOG, 0), one.variant.name))


def readings(planned: list[Reading], given: argparse.Namespace, cpus: dict) -> Iterator[dict]:
    """Take each in a sandbox of its own and return it; UserError if one fails TRIES times."""
    with instrument.folder() as folder:
        for number, one in enumerate(planned, 1):
            words = [one.server, "--mode", one.mode, "--rate", str(given.rate)]
            words += ["--duration", str(given.duration_s)]
            for again in range(TRIES):
                file = folder / f"{number}-{again}.json"
                with Threads(cpus) as threads:
                    status = instrument.inside(KIND, words, file)
                if status == 0:
                    break
            else:
                where = f"server {one.server}, packets {one.mode}, repetition {one.repetition}"
                raise UserError(f"it could not be measured (exit status {status})", where)
            found = json.loads(file.read_text())
            span = found.pop("began_ns"), found.pop("ended_ns")
            ran = {f"{side}_thread_cpu_ns": threads.between_ns(side, *span) for side in cpus}
            seen = all(value is not None for value in ran.values())
            if one.mode == packets.THREADED and not seen:
                raise UserError(
                    "the kernel's threads for packets are not to be seen from here",
                    "/proc", "run it as root, outside of containers that hide other processes",
                )  # fmt: skip
            print(f"  {number} of {len(planned)}: {one.server}, {one.mode}", flush=True)
            yield dataclasses.asdict(one) | found | ran


def _inside(given: argparse.Namespace) -> None:
    # Only here, as what measures loads slowly.
    from deathmatch.instruments import packet_reading as measure

    one = trial(given.name)

    def reading(bed: Testbed, out: Path) -> dict:
        return measure.reading(one, bed, given.mode, given.rate, given.duration_s, out)

    instrument.take(given.inside, reading, TESTBED, one.spec()["sysctl"])
