"""The steps shared by a sweep, a search and the instruments: start, offer, settle, stop."""

import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from deathmatch.hosts import testbed as beds
from deathmatch.measure import bounds, client, conformance, many_connections, server_process
from deathmatch.measure.context import PORT, Context
from deathmatch.measure.sampler import Sampler
from deathmatch.measure.server_process import Running

DRAIN_S = 3
HANG_S = 5
SETTLE_S = 1


def start(context: Context) -> tuple[Running, str | None]:
    """Start the server and wait until it answers; return it, and what went wrong or None."""
    if not context.state.settings:
        context.state.settings = bounds.settings(context)
    with context.times.of("server_start"):
        running, problem = server_process.start(
            context.server, context.bed.installations[beds.SERVER], context.trial.server,
            context.values, context.address, PORT, cpus=context.cpus["server"],
            log=context.out / "server.log",
            prefix=[
                *context.memory.prefix(), *context.accounting.prefix(),
            ],
        )  # fmt: skip
    context.state.started.append(running.process)
    if problem and (breach := context.breach()):
        problem = f"{problem}: {breach}"
    with context.times.of("readiness"):
        # Some servers listen a moment before they can answer.
        deadline = time.monotonic() + SETTLE_S
        while not problem and time.monotonic() < deadline:
            if _answer(context).ok:
                break
            time.sleep(0.05)
    return running, problem


def start_holding(context: Context) -> tuple[Running, str]:
    """Start the server and open the idle connections; return it and what went wrong."""
    running, problem = start(context)
    return running, problem or many_connections.hold_idle(context)


def sampler(context: Context, began_ns: int) -> Sampler:
    """Return a sampler of the trial's hosts, whose times are from `began_ns` on."""
    return Sampler(
        context.sample_interval_s, began_ns, PORT, context.server, context.clients,
        partial(client.pids, context), context.cpus[beds.SERVER], context.accounting.file,
        context.awake,
    )  # fmt: skip


def offer(
    context: Context, sampling: Sampler, rate_rps: int, duration_s: float, log: Path,
    load: Mapping[str, Any] | None = None, *, overload: bool = False,
) -> dict:  # fmt: skip
    """Offer one rate; return its point for trial.json, without the server's state (`settle`).

    The samples at both ends make its counters exact. `load` and `overload` are as in
    `client.offer`.
    """
    worked_before = server_process.threads_cpu_ns(context.server)
    started_ns = time.monotonic_ns()
    with context.times.of("offering"):
        offered = client.offer(
            context, rate_rps, duration_s, log, sampling, load, overload=overload
        )
    context.state.offering_us += (time.monotonic_ns() - started_ns) // 1000
    began_us = (started_ns - sampling.began_ns) // 1000
    worked = server_process.threads_cpu_ns(context.server)
    workers_us = server_process.used_us(worked_before, worked)
    return {
        "offered_rate_rps": rate_rps, "began_us": began_us,
        "workers": context.values["workers"], "workers_us": workers_us, **offered,
    }  # fmt: skip


def settle(context: Context, running: Running, point: dict) -> dict:
    """Return a point with the server's state once it has settled; compact its reports."""
    with context.times.of("drain"):
        settled = point | {"server_state": state(context, running)}
    with context.times.of("compression"):
        client.compact(context, point)
    return settled


def state(context: Context, running: Running) -> str:
    """Let the queues drain, then return "ran", how the server died, or what is wrong with it.

    It hung if nothing answers; a wrong answer is reported as such.
    """
    deadline = time.monotonic() + DRAIN_S
    while time.monotonic() < deadline and context.established() > context.idle_connections:
        time.sleep(0.05)
    if death := _death(context, running):
        return death
    deadline = time.monotonic() + HANG_S
    while True:
        answer = _answer(context)
        if death := _death(context, running):
            return death
        if answer.ok:
            return "ran"
        if time.monotonic() > deadline:
            wrong = conformance.contradicts(answer.seen)
            return f"{'answered wrongly' if wrong else 'hung'}: {answer.seen}"


def _death(context: Context, running: Running) -> str:
    """Return "died: " and how the server ended, also by its memory limit; "" if it did not.

    A server also died if only some of its processes were killed: what is left must not be measured.
    """
    ended, breach = running.died(), context.breach()
    causes = ", ".join(filter(None, [breach, ended]))
    return f"died: {causes}" if causes else ""


def _answer(context: Context) -> conformance.Check:
    probe = conformance.probe(context.spec["conformance"], context.trial.server.deviations)
    return conformance.check(context.address, PORT, [probe], context.bed.dial)[0]


def stop(context: Context, running: Running) -> None:
    """Close the idle connections, stop the server and check that nothing of it is left.

    The result is added to the record's `stops`; changed settings are read before.
    """
    context.state.left = context.state.left or bounds.left(context)
    with context.times.of("stop"):
        while context.state.idle:
            context.state.idle.pop().finish(many_connections.CLOSE_S)
        context.state.stops.append(server_process.stop(running))
