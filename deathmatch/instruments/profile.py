"""Where do a request's microseconds go? `./shell deathmatch profile NAME`.

Samples the call chains of the C server `c-readiness` with perf(1), for each readiness mechanism,
with none, 900 and 8,000 idle connections, at a low and a higher rate. No hardware counter is
needed: perf's software clock takes a sample so many times for each second that the server runs.
"""

import argparse
import itertools
import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from deathmatch.errors import UserError
from deathmatch.instruments import call_chains, instrument
from deathmatch.instruments.instrument import Instrument, Row
from deathmatch.measure import client
from deathmatch.measure.context import Context
from deathmatch.plan import files, matrix
from deathmatch.plan.trial import Trial, Variant

EXPERIMENT, SERVER = "readiness", "c-readiness"
MECHANISMS = ("select", "poll", "epoll", "io_uring")
IDLE, RATES_RPS = (0, 900, 8000), (200, 2000)
# The C library's set of descriptors has places for 1,024.
SELECT_IDLE = 900
# What a reading takes besides its load: namespaces, idle connections, start, warm-up, the samples.
AROUND_S = 8
PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
# Until perf has opened what it samples.
OPEN_S = 0.5


@dataclass(frozen=True)
class Reading:
    """A mechanism, a number of idle connections, and a rate."""

    mechanism: str
    idle: int
    rate_rps: int
    repetition: int = 1

    def __str__(self) -> str:
        """Return what it is, for progress and errors."""
        return f"{self.mechanism}, {self.idle:,} idle, {self.rate_rps:,} req/s"


def readings(options: argparse.Namespace) -> list[Reading]:
    """Return every reading; UserError for an unknown level, and where perf cannot sample."""
    known = files.experiment(EXPERIMENT).factors["idle_connections"].levels
    for count in options.idle:
        if count not in known:
            what = f"the experiment has no {count} idle connections"
            raise UserError(what, "--idle", f"give one of {', '.join(map(str, known))}")
    if not shutil.which("perf"):
        remedy = "install it: Debian has it in linux-perf; nixpkgs was not tried"
        raise UserError("the program perf is missing", "PATH", remedy)
    if os.geteuid() != 0 and int(PARANOID.read_text()) > 1:
        raise UserError("only root may see the kernel's functions", str(PARANOID), "be root")
    mechanisms, idle = options.mechanism or MECHANISMS, options.idle or IDLE
    every = itertools.product(dict.fromkeys(mechanisms), dict.fromkeys(idle), RATES_RPS)
    return [
        Reading(mechanism, count, rate_rps)
        for mechanism, count, rate_rps in every
        if mechanism != "select" or count <= SELECT_IDLE
    ]


def take(reading: Reading, options: argparse.Namespace, out: Path) -> Row:
    """Return {"replies", "cpu_ns", "phases": {name: samples}} of a rate.

    UserError if the server or perf does not start.
    """
    with instrument.serving(idle_trial(reading.mechanism, reading.idle), out) as context:
        client.warm_up(context)
        return _profiled(context, reading.rate_rps, options.duration_s, out)


def idle_trial(mechanism: str, idle: int) -> Trial:
    """Return the trial of the server with this mechanism and number of idle connections."""
    trial = next(
        trial for trial in matrix.possible(instrument.DATASET, [EXPERIMENT])
        if trial.server.name == SERVER
    )  # fmt: skip
    factors = trial.variant.factors | {"readiness": mechanism, "idle_connections": idle}
    return trial.model_copy(update={"variant": Variant(factors=factors)})


def _profiled(context: Context, rate_rps: int, duration_s: float, out: Path) -> Row:
    pids, data, log = context.server_pids(), out / "perf.data", out / "perf.log"
    words = ["perf", "record", "-e", "cpu-clock", "-F", str(call_chains.SAMPLES_HZ), "-g"]
    words += ["-o", str(data), "-p", ",".join(map(str, pids))]
    words += ["--", "sleep", str(duration_s + 2 * OPEN_S)]
    # perf runs where it takes nothing from the server.
    cpus = context.cpus[context.clients[0].name]
    perf = context.server.start(words, output=log, cpus=cpus)
    time.sleep(OPEN_S)
    before_ns = instrument.cpu_ns(context)
    offered = client.offer(context, rate_rps, duration_s, out / "report.txt")
    cpu_ns = instrument.cpu_ns(context) - before_ns
    status = perf.wait(duration_s + 10)
    if status != 0:
        what = f"perf ended with {status}: {log.read_text(errors='replace')[-300:]}"
        raise UserError(what, "perf record", "let perf_event_paranoid allow it, or be root")
    printed = subprocess.run(
        ["perf", "script", "-i", str(data), "-F", "ip,sym"], capture_output=True, text=True
    ).stdout
    chains = call_chains.read(printed.splitlines())
    return {
        "replies": client.replies(context, offered, duration_s), "cpu_ns": cpu_ns,
        "phases": call_chains.by_phase(chains),
    }  # fmt: skip


main = Instrument("profile", EXPERIMENT, SERVER, AROUND_S, readings, take).main
