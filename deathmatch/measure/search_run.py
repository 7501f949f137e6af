"""The search for the server's capacity in a trial: after its sweep, with a server just started.

In: the dataset's `search`. Out: each probe's report in the trial's folder, samples of the kernel in
`probes.SAMPLES_CSV`, and `search` of `trial.json` (`plan.record.RecordedSearch`).
"""

import math
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import polars as pl

from deathmatch.capacity_search import search
from deathmatch.capacity_search.search import End, Offer
from deathmatch.data import offered_rate, probes
from deathmatch.data.kernel_samples import SCHEMA as SAMPLES
from deathmatch.measure import client, steps
from deathmatch.measure.context import Context
from deathmatch.measure.server_process import Running
from deathmatch.plan.trial import BACKLOG

# If the server dies this often, the search ends.
STARTS = 10
NOT_STARTED = "the server was not started: "


def run(context: Context, asked: Mapping[str, Any]) -> dict:
    """Search; return `search` of the trial's record.

    `asked` is `search` of the trial's spec. The server has the listen backlog of `asked`, except
    for the overload. It is started again for that, and whenever it has failed.
    """
    own, running = context, None
    deep = {BACKLOG: asked[BACKLOG]} if BACKLOG in asked else {}
    context = replace(context, values=context.values | deep)
    began_ns = time.monotonic_ns()
    made: list[dict] = []
    rows: list[dict] = []
    probing, starts = search.probing(asked), 0
    offer, end = next(probing), None
    fresh = True
    while end is None:
        if offer.step == search.OVERLOAD and context is not own:
            if not fresh:
                steps.stop(context, running)
            context, fresh = own, True
        if time.monotonic_ns() - began_ns > 1e9 * asked.get("most_s", math.inf):
            end = End(search.REFUSED, reason=f"no end within {asked['most_s']:g} s")
            if not fresh:
                steps.stop(context, running)
            break
        if fresh and starts == STARTS:
            end = End(search.REFUSED, reason=f"{NOT_STARTED}it failed {STARTS} times")
            break
        if fresh:
            starts += 1
            running, problem = steps.start_holding(context)
            if problem:
                end = End(search.REFUSED, reason=f"{NOT_STARTED}{problem}")
                steps.stop(context, running)
                break
            client.warm_up(context)
        probe = _probe(context, running, offer, len(made) + 1, began_ns, rows)
        made.append(probe | {"fresh_start": fresh})
        fresh = probe["server_state"] != "ran"
        try:
            offer = probing.send(_result(context, probe, rows))
        except StopIteration as ended:
            end = ended.value
        if fresh or end:
            steps.stop(context, running)
    pl.DataFrame(rows, schema=SAMPLES).write_csv(context.out / probes.SAMPLES_CSV)
    wall_us = (time.monotonic_ns() - began_ns) // 1000
    return {**asdict(end), "wall_us": wall_us, "probes": made}


def _probe(
    context: Context, running: Running, offer: Offer, number: int, began_ns: int, rows: list[dict]
) -> dict:
    """Offer a rate; return its probe, as in trial.json, and add its samples to `rows`."""
    log = context.out / f"{probes.PROBE_LOGS}{number:02}.txt"
    load = search.load_of(offer.step, context.spec["load"])
    sampler = steps.sampler(context, began_ns)
    with sampler:
        probe = steps.offer(
            context, sampler, offer.rate_rps, offer.duration_s, log, load,
            overload=offer.step == search.OVERLOAD,
        )  # fmt: skip
    probe |= {
        "duration_s": offer.duration_s, "step": offer.step, "round": offer.round,
        "ended_us": (time.monotonic_ns() - began_ns) // 1000,
    }  # fmt: skip
    rows += sampler.rows
    return steps.settle(context, running, probe)


def _result(context: Context, probe: dict, rows: list[dict]) -> search.Result:
    reports = offered_rate.read(context.generator, probe, context.out)
    samples = pl.DataFrame(rows, schema=SAMPLES)
    return probes.result(probes.row(probe, reports, samples, context.spec))
