"""A search for the server's capacity, as a trial runs it: after its sweep, from a fresh start.

In: what the dataset's `search` says. Out: each probe's report in the trial's folder, samples of the
kernel in `probes.SAMPLES_CSV`, and `search` of `trial.json` (`plan.record.RecordedSearch`).
"""

import time
from dataclasses import asdict
from functools import partial
from typing import Protocol

import polars as pl

from deathmatch.capacity_search import search
from deathmatch.capacity_search.search import End, Offer
from deathmatch.data import offered_rate, probes
from deathmatch.data.kernel_samples import SCHEMA as SAMPLES
from deathmatch.hosts import testbed as beds
from deathmatch.measure import client
from deathmatch.measure.context import PORT, Context
from deathmatch.measure.sampler import Sampler

# One that dies so often is no server whose capacity could be told.
STARTS = 10


class Serving(Protocol):
    """The server of a search."""

    def start(self) -> str:
        """Start it, warmed up; return what went wrong, or ""."""

    def state(self) -> str:
        """Let it settle; return "ran", or what became of it, as a point says."""

    def stop(self) -> None:
        """Stop it."""


def run(context: Context, asked: dict, serving: Serving) -> dict:
    """Search; return `search` of the trial's record.

    `asked` is `search` of the trial's spec. The server is started anew whenever it failed.
    """
    began_ns = time.monotonic_ns()
    made: list[dict] = []
    rows: list[dict] = []
    course, starts = search.course(asked), 0
    offer, end = next(course), None
    fresh = True
    while end is None:
        if fresh:
            starts += 1
            problem = serving.start() if starts <= STARTS else f"it failed {STARTS} times"
            if problem:
                end = End(search.REFUSED, reason=f"the server was not started: {problem}")
                break
        probe = _probe(context, offer, len(made) + 1, began_ns, rows, serving)
        made.append(probe | {"fresh_start": fresh})
        fresh = probe["server_state"] != "ran"
        try:
            offer = course.send(_result(context, probe, rows))
        except StopIteration as ended:
            end = ended.value
        if fresh and end is None:
            serving.stop()
    if starts <= STARTS:
        serving.stop()
    pl.DataFrame(rows, schema=SAMPLES).write_csv(context.out / probes.SAMPLES_CSV)
    wall_us = (time.monotonic_ns() - began_ns) // 1000
    return {**asdict(end), "wall_us": wall_us, "probes": made}


def _probe(
    context: Context, offer: Offer, number: int, began_ns: int, rows: list[dict], serving: Serving
) -> dict:
    """Offer a rate; return its probe, as in trial.json, and add its samples to `rows`."""
    log = context.out / f"probe-{number:02}.txt"
    sampler = Sampler(
        context.sample_interval_s, began_ns, PORT, context.server, context.clients,
        partial(client.pids, context), context.cpus[beds.SERVER],
    )  # fmt: skip
    load = search.patient(context.spec["load"])
    started_ns = time.monotonic_ns()
    with sampler:
        offered = client.offer(context, offer.rate_rps, offer.duration_s, log, sampler, load)
    ended_ns = time.monotonic_ns()
    context.state.offering_us += (ended_ns - started_ns) // 1000
    client.compact(context, offered)
    rows += sampler.rows
    return {
        "offered_rate_rps": offer.rate_rps,
        "duration_s": offer.duration_s,
        "step": offer.step,
        "round": offer.round,
        "began_us": (started_ns - began_ns) // 1000,
        "ended_us": (ended_ns - began_ns) // 1000,
        **offered,
        "server_state": serving.state(),
    }


def _result(context: Context, probe: dict, rows: list[dict]) -> search.Told:
    reports = offered_rate.read(context.generator, probe, context.out)
    samples = pl.DataFrame(rows, schema=SAMPLES)
    return probes.result(probes.row(probe, reports, samples, context.spec))
