"""Who is charged for packet processing? `./shell deathmatch packets NAME`.

Measures the CPU time of a few servers for the same rate of connections, with the kernel's work on
packets charged in each of the ways of `hosts.packets`.
"""

import argparse
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from deathmatch.errors import UserError
from deathmatch.hosts import packets
from deathmatch.hosts import testbed as beds
from deathmatch.instruments import serving
from deathmatch.instruments.instrument import Instrument, Plan, Row, drawn, load_plan
from deathmatch.instruments.packet_threads import Threads
from deathmatch.measure import client
from deathmatch.plan import files, matrix
from deathmatch.plan.trial import BACKLOG, Trial

# What costs little but packets, and event loops in C, Erlang and Python.
SERVERS = ("null", "nginx", "yucan", "tornado")
# A server is run as in the first of these experiments that it is in.
EXPERIMENTS = ("static", "backlog", "single-thread", "dynamic")
# What a reading takes besides its load: namespaces, start, warm-up, stop.
AROUND_S = 4.5
# A machine that stood still for a moment loses some connections; a rate that is too high, always.
TRIES = 5
# Each connection with one request: what packets cost a server most.
LOAD = {"requests_per_connection": 1}
WARM_UP_S = 1
# For what both ends still do when the last reply is there.
SETTLE_S = 0.5


@dataclass(frozen=True)
class Reading:
    """A server, and to whom packets are charged."""

    server: str
    mode: str
    repetition: int = 1

    def __str__(self) -> str:
        """Return what it is, for progress and errors."""
        return f"server {self.server}, packets {self.mode}, repetition {self.repetition}"


class Packets(Instrument):
    """The instrument."""

    def plan(self, options: argparse.Namespace) -> Plan:
        """Return every reading; UserError for a server that is in no experiment of EXPERIMENTS."""
        names = tuple(dict.fromkeys(options.server or SERVERS))
        for name in names:
            served_trial(name)
        planned = readings(names, options.repetitions)
        versions = {name: serving.built(self.kind, name, EXPERIMENTS[0]) for name in names}
        about = {"rate_rps": options.rate, "versions": versions}
        rate = f" of {options.rate:,} connections a second"
        return load_plan(planned, options.duration_s, AROUND_S, about, rate)

    def observe(self, reading: Reading, take: Callable[[], list[Row]]) -> list[Row]:
        """Return the row with what the kernel's threads ran, after TRIES failures at most."""
        available = sorted(os.sched_getaffinity(0))
        cpus = {side: beds.cpus(which, available) for side, which in
                (("server", "first"), ("client", "last"))}  # fmt: skip
        for attempt in range(1, TRIES + 1):
            with Threads(cpus) as threads:
                try:
                    (row,) = take()
                    break
                except UserError:
                    if attempt == TRIES:
                        raise
        span = row.pop("began_ns"), row.pop("ended_ns")
        ran_ns = {f"{side}_thread_cpu_ns": threads.between_ns(side, *span) for side in cpus}
        if reading.mode == packets.THREADED and None in ran_ns.values():
            raise UserError(
                "the kernel's threads for packets cannot be seen from here",
                "/proc", "run it as root, outside of containers that hide other processes",
            )  # fmt: skip
        return [row | ran_ns]

    def take(self, reading: Reading, options: argparse.Namespace, out: Path) -> list[Row]:
        """Return what a rate cost, from its beginning to its end on the monotonic clock.

        {"began_ns", "ended_ns", "replies", "server_cpu_ns"}: of the server's processes alone,
        without the kernel's threads. UserError if the server does not start, or answers less than
        all.
        """
        rate_rps, duration_s = options.rate, options.duration_s
        with serving.serving(served_trial(reading.server), out, mode=reading.mode) as context:
            client.offer(context, rate_rps, WARM_UP_S, out / "warm-up.txt", load=LOAD)
            before_ns, began_ns = serving.cpu_ns(context), time.monotonic_ns()
            offered = client.offer(context, rate_rps, duration_s, out / "report.txt", load=LOAD)
            time.sleep(SETTLE_S)
            row = {
                "began_ns": began_ns, "ended_ns": time.monotonic_ns(),
                "replies": client.replies(context, offered, duration_s),
                "server_cpu_ns": serving.cpu_ns(context) - before_ns,
            }  # fmt: skip
        if row["replies"] != rate_rps * duration_s:
            what = f"{row['replies']} of {rate_rps * duration_s} requests were answered"
            raise UserError(what, str(reading), "take a lower --rate")
        return [row]


main = Packets("packets", {"rate": 1, "duration_s": 1}).main


def readings(servers: Sequence[str], repetitions: int) -> list[Reading]:
    """Return every reading, those of a repetition in an order that is drawn for it."""
    return drawn([Reading(name, mode) for name in servers for mode in packets.MODES], repetitions)


def served_trial(server: str) -> Trial:
    """Return the trial that gives a server its settings; UserError if it has none."""
    named = files.server(server)
    experiment = next((name for name in EXPERIMENTS if name in named.experiments), None)
    if experiment is None:
        what = f"server {server!r} is in no experiment that can send one request per connection"
        raise UserError(what, "--server", "take one that is in " + " or ".join(EXPERIMENTS))
    trials = [
        trial for trial in matrix.possible(serving.DATASET, [experiment])
        if trial.server.name == server and trial.n == 1
    ]  # fmt: skip
    if not trials:
        what = f"dataset {serving.DATASET!r} has no trial of server {server!r}"
        raise UserError(what, "--server")
    return max(
        trials, key=lambda trial: (trial.variant.factors.get(BACKLOG, 0), trial.variant.name)
    )
