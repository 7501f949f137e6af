"""One trial on its hosts: prepare, start, check, warm up, sweep, search, stop, prove clean.

Whatever a server does, even its death, is a result for `trial.json`; UserError means that the trial
could not be run.
"""

import contextlib
import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import polars as pl

from deathmatch.builds import clients
from deathmatch.data.kernel_samples import SCHEMA as SAMPLES
from deathmatch.errors import UserError
from deathmatch.hosts import audit, awake, network_settings
from deathmatch.hosts import testbed as beds
from deathmatch.hosts.memory import Guard
from deathmatch.load.generator import FIRST_WRONG
from deathmatch.measure import (
    bounds,
    churn,
    client,
    conformance,
    machine,
    many_connections,
    search_run,
    server_process,
    steps,
    storage,
)
from deathmatch.measure.conformance import Check
from deathmatch.measure.context import PORT, Context, NotMeasured, StepTimes, prepare
from deathmatch.measure.server_process import Running
from deathmatch.plan import files
from deathmatch.plan.paths import ROOT
from deathmatch.plan.record import BEFORE_WALL, LEFT_BOUNDS, NOT_BUILT, SCHEMA_VERSION
from deathmatch.plan.trial import Trial

KEEPS = "keeps to its CPUs and settings"


def run(trial: Trial, hosts: beds.Testbed) -> None:
    """Measure a trial and write its folder atomically; raise UserError if it cannot be run.

    The working folder must be the project's root.
    """
    partial = trial.path.with_name(f".{trial.n}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    record = measure(trial, hosts, partial)
    (partial / "trial.json").write_text(json.dumps(record, indent=2) + "\n")
    # The logs may be published, and should not contain the path of this clone.
    for file in partial.iterdir():
        if file.suffix in (".json", ".log", ".txt"):
            here = file.read_bytes().replace(f"{ROOT}/".encode(), b"")
            file.write_bytes(here.replace(str(ROOT).encode(), b"."))
    # This replaces the folder of an earlier run.
    shutil.rmtree(trial.path, ignore_errors=True)
    partial.rename(trial.path)


def measure(trial: Trial, hosts: beds.Testbed, out: Path) -> dict:
    """Return a trial's record, as in `trial.json`; logs and samples are in `out`."""
    site = hosts.installations[beds.SERVER]
    built = site.built(trial.server)
    record = {
        "experiment": trial.experiment.name, "server": trial.server.name,
        # Without the folder of datasets that are not published yet.
        "dataset": trial.dataset,
        "n": trial.n, "testbed": hosts.spec.name, "spec": trial.spec(),
        "schema_version": SCHEMA_VERSION, "seed": files.dataset(trial.dataset).seed,
        "version": built["version"],
        "started_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "descriptors": hosts.raise_descriptors(),
        "tools": {"harness": hosts.harness(), "server": built["tools"]},
    }  # fmt: skip
    if not built["ok"]:
        return record | {"outcome": NOT_BUILT, "reason": built["log"], "points": []}
    times = StepTimes()
    if trial.experiment.client:
        context = replace(prepare(trial, record["spec"], hosts, out), times=times)
        cpus = {cpu for own in context.cpus.values() for cpu in own}
        with awake.kept(hosts.server, cpus, wanted=not hosts.separate) as spinning:
            record |= measure_load(replace(context, awake=spinning))
        record["awake"] = spinning.record()
    else:
        record |= storage.measure(trial, record["spec"], hosts, out, times)
    with times.of("machine"):
        record["machine"] = machine.about(
            hosts.server.read,
            hosts.installations[hosts.clients[0].name],
            clients.needed(trial.experiment.name, trial.load_generator),
            f"experiment {trial.experiment.name!r}",
        )
    steps_us = times.record()
    wall_us = sum(steps_us.values())
    return record | {"wall_us": wall_us, "steps_us": {BEFORE_WALL: hosts.opened_us} | steps_us}


def measure_load(context: Context) -> dict:
    """Return the record's fields of a trial under load: its steps, and where they ran."""
    bed = context.bed.spec
    try:
        with context.times.of("audit"):
            states = audit.before_trial(context.bed, context.cpus, context.spec)
        with Guard(context.memory, context.server, context.server_pids):
            record = _measured(context)
    except NotMeasured as error:
        record = {"points": []} | error.record
    except UserError:
        # Nobody else will.
        context.end()
        raise
    record["stops"] = [stop.record() for stop in context.state.stops]
    record |= {
        "memory": context.memory.record(), "server_cpu": context.accounting.record(),
        "server_log": context.server_log(),
    }  # fmt: skip
    with context.times.of("stop"):
        context.end()
    sides = zip(context.clients, bed.client_sides)
    return record | {
        "offering_us": context.state.offering_us,
        "sysctl": {
            "server": context.server.sysctls(sorted({*bed.server.sysctl, *context.spec["sysctl"]})),
            **{host.name: host.sysctls(sorted(side.sysctl)) for host, side in sides},
        },
        "network_settings": network_settings.record(
            {host.name: network_settings.read(host) for host in context.bed.hosts}
        ),
        "cpus": context.cpus,
        "cpus_note": "" if context.bed.separate else beds.shared_note(context.cpus),
        "separate": context.bed.separate,
        "hosts": states,
    }


def _measured(context: Context) -> dict:
    with stopping(context, steps.start(context)) as running:
        checks = check(context, running)
    # The sweep stops what it started: it may start the server again.
    points, counted = sweep(context, running)
    asked = context.spec.get("search")
    searched = search_run.run(context, asked) if asked else None
    if context.state.left:
        raise NotMeasured(LEFT_BOUNDS, context.state.left, checks)
    with context.times.of("cool_down"):
        time.sleep(context.spec.get("cool_down_s", 0))
    with context.times.of("reports"):
        client.check_reports(context, points)
        points = _with_wrong_answers(context, points, checks)
    failures = any(point["server_state"] != "ran" or point["wrong_answers"] for point in points)
    known = context.trial.server.deviations
    failed = [check.name for check in checks if not check.ok]
    return {
        "outcome": "measured, with failures" if failures else "measured",
        "reason": " ".join(f"{name}: {known[name]}" for name in failed),
        "points": points,
        "conformance": [check.record() for check in checks],
        **({"system_calls": counted} if counted else {}),
        **({"search": searched} if searched else {}),
    }


def _with_wrong_answers(context: Context, points: list[dict], checks: list[Check]) -> list[dict]:
    """Return the points, each with its number of wrong answers.

    Raises NotMeasured if the load generator found invalid answers and no valid one at any rate. A
    server that was only too slow counts as measured.
    """
    generator, duration_s = context.generator, context.spec["duration_s"]
    reports = [client.fields(context, point, duration_s) for point in points]
    known = [fields for fields in reports if fields is not None]
    invalid = [fields for fields in known if generator.invalid(fields)]
    if invalid and not any(generator.good(fields) for fields in known):
        seen = client.answers_problem(generator, invalid[-1])
        reason = f"no good answer at any of {len(points)} rates: {seen}"
        raise NotMeasured("answers wrongly", reason, checks)
    return [
        point
        | {
            "wrong_answers": generator.wrong_answers(fields) if fields else None,
            FIRST_WRONG: fields and fields.get(FIRST_WRONG),
        }
        for point, fields in zip(points, reports, strict=True)
    ]


@contextlib.contextmanager
def stopping(context: Context, started: tuple[Running, str | None]) -> Iterator[Running]:
    """Stop the server if it did not start, or if the block raises NotMeasured."""
    running, problem = started
    try:
        if problem:
            raise NotMeasured("did not start", f"{problem}\n{running.tail()}")
        yield running
    except NotMeasured:
        steps.stop(context, running)
        raise


def check(context: Context, running: Running) -> list[Check]:
    """Return the checks of the server; raise NotMeasured if it gives wrong answers.

    The idle connections are open from now on.
    """
    if ended := running.died():
        # Until now it got connections that carried nothing, and requests to see whether it answers.
        reason = f"ended before it was checked, after empty connections and requests ({ended})"
        raise NotMeasured("did not start", f"{reason}\n{running.tail()}")
    known = context.trial.server.deviations
    with context.times.of("conformance"):
        checks = conformance.check_variant(
            context.server, context.address, PORT,
            context.spec["conformance"], context.trial.variant.factors, context.server_pids,
            known, dial=context.bed.dial,
        )  # fmt: skip
        if all(check.ok or check.name in known for check in checks):
            checks.append(client.check_answers(context))
    failed = [check for check in checks if not check.ok and check.name not in known]
    if not failed:
        with context.times.of("check_for_rest"):
            rest = conformance.check_rest(context.server, context.server_pids())
        checks.append(rest)
        failed = [] if rest.ok or rest.name in known else [rest]
    checks.append(Check(KEEPS, bounds.left(context)))
    failed += [] if checks[-1].ok else checks[-1:]
    if context.idle_connections and not failed:
        problem = many_connections.hold_idle(context)
        name = f"holds {context.idle_connections} idle connections"
        checks.append(Check(name, problem))
        failed = checks[-1:] if problem else []
    # A server that has just crashed may still be a zombie.
    ended = running.died(0.5 if failed else 0)
    tail = f"({ended})\n{running.tail()}"
    if breach := context.breach():
        reason = f"{breach}, as it was checked {tail if ended else ''}"
        raise NotMeasured("did not start", reason, checks)
    if failed:
        reason = "; ".join(f"{check.name}: {check.seen}" for check in failed)
        if ended:
            reason += f"; it ended {tail}"
        kept = failed[0].name != KEEPS
        raise NotMeasured("answers wrongly" if kept else LEFT_BOUNDS, reason, checks)
    # Another program answered: the server may have found its port in use.
    if ended:
        reason = f"ended as it was checked {tail}"
        raise NotMeasured("did not start", reason, checks)
    return checks


def sweep(context: Context, running: Running) -> tuple[list[dict], dict | None]:
    """Offer every rate to the warm server; stop it; return the points and the system calls.

    A server that died or hung is started again for the next rate, whose point records that.
    """
    points, began_ns = [], time.monotonic_ns()
    sampler = steps.sampler(context, began_ns)
    with sampler:
        warmed, fresh = warm_up(context), True
        for rate_rps in context.spec["rates_rps"]:
            log = context.out / f"{context.spec['client']}-{rate_rps}.txt"
            point = steps.offer(context, sampler, rate_rps, context.spec["duration_s"], log)
            point = steps.settle(context, running, point)
            ran = point["server_state"] == "ran"
            point["log_tail"] = "" if ran else running.tail()
            if context.idle_connections:
                point["idle_held"] = context.established()
            points.append(point | {"fresh_start": fresh} | (warmed if fresh else {}))
            fresh = not ran
            if fresh:
                steps.stop(context, running)
                running, problem = steps.start_holding(context)
                if problem:
                    points[-1]["server_state"] += f"; then {problem}"
                    break
                warmed = warm_up(context)
    with context.times.of("system_calls"):
        counted = count_system_calls(context) if not running.died() else None
    steps.stop(context, running)
    pl.DataFrame(sampler.rows, schema=SAMPLES).write_csv(context.out / "samples.csv")
    return points, counted


def warm_up(context: Context) -> dict[str, dict]:
    """Warm the server up; return the fields that the next point records about it, if any."""
    client.warm_up(context)
    asked = context.spec.get("churn")
    if not asked:
        return {}
    with context.times.of("churn"):
        return {"warm_up": churn.until_steady(context, asked)}


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
    return server_process.system_calls(context.server, context.server_pids(), offer, log)
