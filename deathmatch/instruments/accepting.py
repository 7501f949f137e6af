"""How long does a connection wait to be accepted, and who is woken? `deathmatch accepting NAME`.

Offers connections to the C server `acceptors`, which counts its own waits and switches, and reads
from the kernel's time stamps how long each request was there before it was read.
"""

import argparse
import dataclasses
import itertools
import json
from dataclasses import dataclass
from pathlib import Path

from deathmatch.errors import UserError
from deathmatch.instruments import instrument
from deathmatch.instruments.instrument import Instrument, Row
from deathmatch.measure import client
from deathmatch.plan import matrix
from deathmatch.plan.trial import Trial

EXPERIMENT, SERVER = "accept-queue", "acceptors"
# Who is woken: threads that only accept and answer.
HERDS, THREADS, HERD_RPS, DEEP = ("herd", "several", "reuseport"), (1, 4, 16), 5000, 4096
# How long a request waits: some 4,400 a second are served, so half, nearly all, and too many.
WORK_US, BACKLOGS, RATES_RPS = 200, (8, 32, 128, 512), (2000, 4000, 6000)
# As servers/acceptors/acceptors.c has it.
MOST_THREADS = 64
# What a reading takes besides its load: namespaces, start, stop, and the client's patience.
AROUND_S = 4
# With the last argument the server counts, and prints on SIGTERM what it counted.
RUN = "acceptors {host} {port} {backlog} {accept} {work_us} {threads}"
# What is not answered by then was dropped, and would come again with the retries of its SYN.
LOAD = {"requests_per_connection": 1, "timeout_s": 2}


@dataclass(frozen=True)
class Reading:
    """How the server is run, and the rate that it gets."""

    accept: str
    threads: int
    backlog: int
    work_us: int
    rate_rps: int
    repetition: int = 1

    def __str__(self) -> str:
        """Return what it is, for progress and errors."""
        own = f"{self.accept}, {self.threads} threads, backlog {self.backlog}"
        return f"{own}, {self.rate_rps:,} req/s"


def readings(options: argparse.Namespace) -> list[Reading]:
    """Return every reading; UserError for numbers that the server does not take."""
    for option, values, most in (
        ("--threads", options.threads, MOST_THREADS), ("--backlog", options.backlog, DEEP),
    ):  # fmt: skip
        if not all(1 <= value <= most for value in values):
            raise UserError(f"it must be from 1 to {most}", option, "give another number")
    herds = [
        Reading(way, count, DEEP, 0, HERD_RPS)
        for way, count in itertools.product(HERDS, dict.fromkeys(options.threads or THREADS))
    ]
    queues = [
        Reading("one", 1, backlog, WORK_US, rate_rps)
        for backlog in dict.fromkeys(options.backlog or BACKLOGS) for rate_rps in RATES_RPS
    ]  # fmt: skip
    return herds + queues


def take(reading: Reading, options: argparse.Namespace, out: Path) -> Row:
    """Return what the server counted, as servers/acceptors/acceptors.c has it, and `replies`.

    UserError if the server does not start or prints no account.
    """
    trial, duration_s = counting_trial(), options.duration_s
    with instrument.serving(trial, out, dataclasses.asdict(reading)) as context:
        report = out / "report.txt"
        offered = client.offer(context, reading.rate_rps, duration_s, report, load=LOAD)
        replies = client.replies(context, offered, duration_s)
    return account(out / "server.log") | {"replies": replies}


def counting_trial() -> Trial:
    """Return a trial of the server on one CPU, which counts."""
    trial = next(
        trial for trial in matrix.possible(instrument.DATASET, [EXPERIMENT])
        if trial.server.name == SERVER and trial.variant.factors["schedulers"] == "one"
    )  # fmt: skip
    return trial.model_copy(update={"server": trial.server.model_copy(update={"run": RUN})})


def account(log: Path) -> Row:
    """Return the account in the last line of the server's output; UserError if there is none."""
    last = log.read_text(errors="replace").rstrip("\n").rpartition("\n")[2]
    try:
        return json.loads(last)
    except ValueError:
        what = f"the server printed no account of what it accepted, but {last!r}"
        raise UserError(what, log.name, "run it again") from None


main = Instrument("accepting", EXPERIMENT, SERVER, AROUND_S, readings, take).main
