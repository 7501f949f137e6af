"""One trial on its hosts: prepare, start, check, warm up, sweep, search, stop, prove clean.

What a server does, its death included, is a result and ends in `trial.json`; UserError means that
the trial itself could not be run.
"""

import contextlib
import json
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import polars as pl

from deathmatch.builds import clients
from deathmatch.data.kernel_samples import SCHEMA as SAMPLES
from deathmatch.errors import UserError
from deathmatch.hosts import testbed as beds
from deathmatch.measure import (
    churn,
    client,
    conformance,
    host_checks,
    idle_connections,
    machine,
    search_run,
    server_process,
    storage,
    system_calls,
)
from deathmatch.measure.context import PORT, Context, NotMeasured, prepare
from deathmatch.measure.guard import Guard
from deathmatch.measure.sampler import Sampler
from deathmatch.measure.server_process import Running
from deathmatch.plan import files
from deathmatch.plan.record import SCHEMA_VERSION
from deathmatch.plan.root import ROOT
from deathmatch.plan.trial import BACKLOG, Trial

DRAIN_S = 3
HANG_S = 5
SETTLE_S = 1


def run(trial: Trial, hosts: beds.Testbed) -> None:
    """Measure a trial and write its folder, which appears whole; UserError if it cannot be run.

    From the project's root.
    """
    partial = trial.path.with_name(f".{trial.n}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    record = measure(trial, hosts, partial)
    (partial / "trial.json").write_text(json.dumps(record, indent=2) + "\n")
    # What the server and the client said may be published: it need not tell where this clone is.
    for file in partial.iterdir():
        if file.suffix in (".json", ".log", ".txt"):
            here = file.read_bytes().replace(f"{ROOT}/".encode(), b"")
            file.write_bytes(here.replace(str(ROOT).encode(), b"."))
    # One that a former run left is replaced.
    shutil.rmtree(trial.path, ignore_errors=True)
    partial.rename(trial.path)


def measure(trial: Trial, hosts: beds.Testbed, out: Path) -> dict:
    """Return a trial's record, as in `trial.json`; logs and samples are in `out`."""
    site = hosts.installations[beds.SERVER]
    built = site.built(trial.server)
    record = {
        "experiment": trial.experiment.name, "server": trial.server.name, "dataset": trial.dataset,
        "n": trial.n, "testbed": hosts.spec.name, "spec": trial.spec(),
        "schema_version": SCHEMA_VERSION, "seed": files.dataset(trial.dataset).seed,
        "version": built["version"],
        "started_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "descriptors": hosts.raise_descriptors(),
        "tools": {"harness": hosts.harness(), "server": built["tools"]},
    }  # fmt: skip
    if not built["ok"]:
        return record | {"outcome": "not built", "reason": built["log"], "points": []}
    began_ns = time.monotonic_ns()
    if trial.experiment.client:
        record |= measure_load(prepare(trial, record["spec"], hosts, out))
    else:
        record |= storage.measure(trial, record["spec"], hosts, out)
    needed = clients.needed(trial.experiment.name)
    return record | {
        "wall_us": (time.monotonic_ns() - began_ns) // 1000,
        "machine": machine.about(
            hosts.server.read,
            hosts.installations[hosts.clients[0].name],
            needed,
            f"experiment {trial.experiment.name!r}",
        ),
    }


def measure_load(context: Context) -> dict:
    """Return what a trial under load adds to the record: the steps, and what they were taken on."""
    bed = context.bed.spec
    found = host_checks.begin(context)
    try:
        with Guard(context.memory, context.server, context.server_pids):
            record = _steps(context)
    except NotMeasured as error:
        record = {"points": []} | error.record
    except UserError:
        # Nobody else will.
        context.end()
        raise
    record["stops"] = context.state.stops
    if context.throttle.record:
        record["throttle"] = context.throttle.record | context.throttle.stalls()
    record |= {"memory": context.memory.record(), "server_log": context.server_log()}
    context.end()
    sides = zip(context.clients, bed.client_sides)
    return record | {
        "offering_us": context.state.offering_us,
        "sysctl": {
            "server": context.server.sysctls(sorted({*bed.server.sysctl, *context.spec["sysctl"]})),
            **{host.name: host.sysctls(sorted(side.sysctl)) for host, side in sides},
        },
        "cpus": context.cpus,
        "cpus_note": "" if context.bed.separate else beds.shared_note(context.cpus),
        "separate": context.bed.separate,
        "hosts": host_checks.end(context, found),
    }


def _steps(context: Context) -> dict:
    with _stopping(context, start(context)) as running:
        checks = check(context, running)
    # The sweep stops what it started: it may start the server again.
    points, counted = sweep(context, running)
    asked = context.spec.get("search")
    searched = search_run.run(context, asked, _Serving(context, asked)) if asked else None
    time.sleep(context.spec.get("cool_down_s", 0))
    client.check_reports(context, points)
    failures = any(point["server_state"] != "ran" for point in points)
    known = context.trial.server.deviations
    failed = [each["name"] for each in checks if not each["ok"]]
    return {
        "outcome": "measured, with failures" if failures else "measured",
        "reason": " ".join(f"{name}: {known[name]}" for name in failed),
        "points": points,
        "conformance": checks,
        **({"system_calls": counted} if counted else {}),
        **({"search": searched} if searched else {}),
    }


class _Serving:
    """The server of a search (`search_run.Serving`), with the backlog that the search is told."""

    def __init__(self, context: Context, asked: Mapping):
        deep = {BACKLOG: asked[BACKLOG]} if BACKLOG in asked else {}
        self._context = replace(context, values=context.values | deep)
        self._running: Running | None = None

    def start(self) -> str:
        self._running, problem = start(self._context)
        problem = problem or hold_idle(self._context)
        if not problem:
            client.warm_up(self._context)
        return problem

    def state(self) -> str:
        return _state(self._context, self._running)

    def stop(self) -> None:
        stop(self._context, self._running)


@contextlib.contextmanager
def _stopping(context: Context, started: tuple[Running, str | None]) -> Iterator[Running]:
    """Stop the server if it did not start, or if the block finds that it cannot be measured."""
    running, problem = started
    try:
        if problem:
            raise NotMeasured("did not start", f"{problem}\n{running.tail()}")
        yield running
    except NotMeasured:
        stop(context, running)
        raise


def start(context: Context) -> tuple[Running, str | None]:
    """Start the server and wait until it answers; return it and what went wrong, or None."""
    running, problem = server_process.start(
        context.server, context.bed.installations[beds.SERVER], context.trial.server,
        context.values, context.address, PORT, cpus=context.cpus["server"],
        log=context.out / "server.log",
        prefix=[*context.throttle.prefix(), *context.memory.prefix()],
    )  # fmt: skip
    context.state.started.append(running.process)
    if problem and (breach := context.breach()):
        problem = f"{problem}: {breach}"
    # Some listen a moment before they can answer.
    deadline = time.monotonic() + SETTLE_S
    while not problem and time.monotonic() < deadline:
        if _answer(context)["ok"]:
            break
        time.sleep(0.05)
    return running, problem


def check(context: Context, running: Running) -> list[dict]:
    """Return what the server was checked for; raise NotMeasured if it answers wrongly.

    The idle connections are open from now on.
    """
    known = context.trial.server.deviations
    checks = conformance.check_variant(
        context.server, context.address, PORT, context.spec["conformance"],
        context.trial.variant.factors, context.server_pids, known,
        dial=context.bed.dial,
    )  # fmt: skip
    failed = [each for each in checks if not each["ok"] and each["name"] not in known]
    if context.idle_connections and not failed:
        problem = hold_idle(context)
        name = f"holds {context.idle_connections} idle connections"
        checks.append({"name": name, "ok": not problem, "seen": problem})
        failed = checks[-1:] if problem else []
    # One that just crashed is not reaped at once.
    ended = running.died(0.5 if failed else 0)
    tail = f"({ended})\n{running.tail()}"
    if breach := context.breach():
        reason = f"{breach}, as it was checked {tail if ended else ''}"
        raise NotMeasured("did not start", reason, conformance=checks)
    if failed:
        reason = "; ".join(f"{each['name']}: {each['seen']}" for each in failed)
        if ended:
            reason += f"; it ended {tail}"
        raise NotMeasured("answers wrongly", reason, conformance=checks)
    # Something else answered: the server may have found its port in use.
    if ended:
        reason = f"ended as it was checked {tail}"
        raise NotMeasured("did not start", reason, conformance=checks)
    return checks


def hold_idle(context: Context) -> str:
    """Open the idle connections, if there are to be any; return what went wrong."""
    if not context.idle_connections:
        return ""
    for host in context.clients:
        held = idle_connections.hold(
            host, context.bed.installations[host.name], context.address, PORT, context.spec["load"],
            context.idle_connections, context.part(host), cpus=context.cpus[host.name],
            sources=context.sources(host),
        )  # fmt: skip
        if held:
            context.state.idle.append(held)
        if held and held.problem:
            return held.problem
    found = context.established()
    return "" if found >= context.idle_connections else f"the kernel has {found} established"


def sweep(context: Context, running: Running) -> tuple[list[dict], dict | None]:
    """Offer every rate to the warm server; stop it; return the points and the system calls.

    One that died or hung is started anew for the next rate, as its point says.
    """
    points, start_ns = [], time.monotonic_ns()
    sampler = _sampler(context, start_ns)
    with sampler:
        warmed, fresh = warm_up(context), True
        for rate_rps in context.spec["rates_rps"]:
            point = _point(context, running, sampler, rate_rps, start_ns)
            points.append(point | {"fresh_start": fresh} | (warmed if fresh else {}))
            fresh = point["server_state"] != "ran"
            if fresh:
                stop(context, running)
                running, problem = start(context)
                problem = problem or hold_idle(context)
                if problem:
                    points[-1]["server_state"] += f"; then {problem}"
                    break
                warmed = warm_up(context)
    counted = count_system_calls(context) if not running.died() else None
    stop(context, running)
    pl.DataFrame(sampler.rows, schema=SAMPLES).write_csv(context.out / "samples.csv")
    return points, counted


def warm_up(context: Context) -> dict[str, dict]:
    """Warm the server up; return what the first point after it says of that, if anything."""
    client.warm_up(context)
    asked = context.spec.get("churn")
    return {"warm_up": churn.until_steady(context, asked)} if asked else {}


def _point(
    context: Context, running: Running, sampler: Sampler, rate_rps: int, start_ns: int
) -> dict:
    """Offer one rate; return its point, as in trial.json."""
    log = context.out / f"{context.spec['client']}-{rate_rps}.txt"
    duration_s = context.spec["duration_s"]
    began_ns = time.monotonic_ns()
    # Its samples at either end make a point's counters exact.
    offered = client.offer(context, rate_rps, duration_s, log, sampler)
    context.state.offering_us += (time.monotonic_ns() - began_ns) // 1000
    state = _state(context, running)
    client.compact(context, offered)
    held = context.established() if context.idle_connections else None
    return {
        "offered_rate_rps": rate_rps,
        "began_us": (began_ns - start_ns) // 1000,
        **offered,
        "server_state": state,
        "log_tail": "" if state == "ran" else running.tail(),
        **({} if held is None else {"idle_held": held}),
    }


def _sampler(context: Context, start_ns: int) -> Sampler:
    return Sampler(
        context.sample_interval_s, start_ns, PORT, context.server, context.clients,
        partial(client.pids, context), context.cpus[beds.SERVER],
    )  # fmt: skip


def _state(context: Context, running: Running) -> str:
    """Let the queues drain, then return "ran", how the server died, or what is wrong with it.

    It hung if nothing answers; another answer than before is told as such.
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
        if answer["ok"]:
            return "ran"
        if time.monotonic() > deadline:
            wrong = conformance.contradicts(answer["seen"])
            return f"{'answered wrongly' if wrong else 'hung'}: {answer['seen']}"


def _death(context: Context, running: Running) -> str:
    """Return "died: " and how the server ended, of its memory's limit too; "" if it did not.

    One of which only a part was killed is not what was to be measured any more.
    """
    ended, breach = running.died(), context.breach()
    told = ", ".join(filter(None, [breach, ended]))
    return f"died: {told}" if told else ""


def _answer(context: Context) -> dict:
    probe = conformance.probe(context.spec["conformance"], context.trial.server.deviations)
    return conformance.check(context.address, PORT, [probe], context.bed.dial)[0]


def count_system_calls(context: Context) -> dict | None:
    """Return the server's system calls for each reply, if the trial is to count them."""
    if "system_calls_rate_rps" not in context.spec or context.trial.n != 1:
        return None
    rate_rps, report = context.spec["system_calls_rate_rps"], context.out / "traced.txt"

    def offer(duration_s: float) -> int | None:
        offered = client.offer(context, rate_rps, duration_s, report)
        replies = client.replies(context, offered, duration_s)
        return replies if replies == round(rate_rps * duration_s) else None

    log = context.out / "strace.txt"
    return system_calls.count(context.server, context.server_pids(), offer, log)


def stop(context: Context, running: Running) -> None:
    """Close the idle connections, stop the server and prove that nothing of it is left.

    What was found is one of the record's `stops`.
    """
    while context.state.idle:
        context.state.idle.pop().release()
    context.state.stops.append(server_process.stop(running))
