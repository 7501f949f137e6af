"""Checks of one trial: its load, its answers, its server's settings, its CPUs.

Each is a function from the trial to the checks that it fails, with what was seen.
"""

from collections.abc import Callable, Iterator

import polars as pl

from deathmatch.capacity_search import search
from deathmatch.checks.findings import Finding
from deathmatch.data import kernel_samples, limits, probes
from deathmatch.data.strict.evidence import Evidence, Trial, fault
from deathmatch.load import registry
from deathmatch.plan.experiment import expected_body
from deathmatch.plan.record import BEFORE_WALL, ENDED_WELL, MEASURED, client_state, loads

# A server that loses a fifth of its CPU's time is at its limit when it seems to use 83 % of it.
MOST_STOLEN = 0.2
# Another program takes half of two CPUs, or a quarter if it shares one of them with the server.
MOST_OTHER_WORK = 0.2
# Each listening socket has a queue of its own, and the sample is their sum.
SEVERAL = {("accept", "reuseport"), ("schedulers", "all")}
SOMAXCONN = "net.core.somaxconn"
WAITS = "waits with "

Seen = Iterator[tuple[str, str]]
"""Names of checks, each with what was seen instead."""


def outcome(trial: Trial) -> Seen:
    """A measured trial has points, one of which failed or has wrong answers if its outcome is "with
    failures"; a trial that is not measured has a reason and no points.
    """
    named, points = trial.record["outcome"], trial.record["points"]
    failed = any(point["server_state"] != "ran" for point in trial.points)
    wrong = any(point.get("wrong_answers") for point in trial.points)
    due = {MEASURED[1]} if failed else {*MEASURED} if wrong else {MEASURED[0]}
    fits = points and (named in due or not trial.points)
    if not (fits if trial.is_measured else not points and trial.record["reason"].strip()):
        seen = f"{'one' if failed else 'none'} that failed, reason {trial.record['reason']!r}"
        yield "DM-OUTCOME", f"{named!r}: {len(points)} points, {seen}"


def sweep(trial: Trial) -> Seen:
    """Each rate was offered once, in order, by a client that ended well, with a whole report.

    The server was started afresh for the first rate, and after each at which it failed. A sweep
    ends early only if the server could not be started again. The trial's times add up.
    """
    rates, due = [point["offered_rate_rps"] for point in trial.points], trial.spec["rates_rps"]
    ended = "; then " in trial.points[-1]["server_state"]
    if rates != (due[: len(rates)] if ended else due):
        yield "DM-SPEC", f"offered {rates}, planned {due} req/s"
    fresh = True
    for point in trial.points:
        at, ran = f"at {point['offered_rate_rps']} req/s", point["server_state"] == "ran"
        if point["fresh_start"] != fresh:
            yield "DM-FRESH", f"fresh start: {point['fresh_start']} {at}"
        if ran and client_state(point) != ENDED_WELL:
            yield "DM-CLIENT", f"{client_state(point)} {at}"
        fresh = not ran
    for point, row in trial.offers:
        if client_state(point) == ENDED_WELL and row["report"] != "whole":
            logs = ", ".join(client["log"] for client in loads(point))
            yield "DM-WHOLE", f"{logs}: gone, cut, or of impossible numbers"
        if row.get("loop") and (row["loop"] == "closed") != (point["offered_rate_rps"] == 0):
            yield "DM-COMMAND", f"its loop was {row['loop']} at {point['offered_rate_rps']} req/s"
    offering_us, wall_us = (trial.record.get(key) for key in ("offering_us", "wall_us"))
    if None not in (offering_us, wall_us) and offering_us > wall_us:
        yield "DM-TIMES", f"load was offered for {offering_us} us of {wall_us} us"
    steps_us = trial.record.get("steps_us") or {}
    if steps_us and sum(steps_us.values()) - steps_us.get(BEFORE_WALL, 0) != wall_us:
        yield "DM-TIMES", f"its steps do not add up to its {wall_us} us"


def answers(trial: Trial) -> Seen:
    """Answers have the expected body, over connections that were kept; the number of wrong ones is
    that counted when the trial ended.
    """
    generator, load = registry.of_trial(trial.spec), trial.spec["load"]
    calls, body = load.get("requests_per_connection"), None
    if "uri" in load:
        body = expected_body(trial.spec.get("conformance", []), load)
    size = None if body is None else len(body.encode())
    for point, row in trial.offers[: len(trial.points)]:
        at, counted = f"at {row['offered_rate_rps']} req/s", point.get("wrong_answers")
        if row["report"] != "whole" or not row["replies"]:
            continue
        if counted is not None and (wrong := generator.wrong_answers(row)) != counted:
            yield "DM-ANSWERS", f"{wrong} wrong answers {at}, where {counted} were counted"
        length, content = row.get("connection_length_replies"), row.get("reply_content_bytes")
        well = point["server_state"] == "ran" and not row.get("errors_total")
        if well and calls and length is not None and length < 0.99 * calls:
            yield "DM-KEEP-ALIVE", f"{length:g} replies a connection, not {calls}, {at}"
        # httperf prints whole bytes of a mean.
        fits = None in (content, size) or abs(content - size) <= 0.5
        if not fits and not generator.wrong(row):
            yield "DM-BODY", f"bodies of {content:g} bytes, not {size}, {at}"


def searched(trial: Trial) -> Seen:
    """A search's rates and its result follow from the results of its probes."""
    asked, recorded = trial.spec.get("search"), trial.record.get("search") or {}
    if not asked:
        return
    offered = trial.offers[len(trial.points) :]
    due, end = search.replayed(asked, [probes.result(row) for _, row in offered])
    for (probe, _), offer in zip(offered, due):
        if probe["offered_rate_rps"] != offer.rate_rps:
            yield "DM-SEARCH", f"it offered {probe['offered_rate_rps']}, where {offer} was due"
    given = (end.outcome, end.rate_rps) if end else (search.REFUSED, None)
    if (own := (recorded.get("outcome"), recorded.get("rate_rps"))) != given:
        yield "DM-SEARCH", "it says {}, {} req/s; its probes give {}, {} req/s".format(*own, *given)


def conformance(trial: Trial) -> Seen:
    """A server passed each check except known deviations; its wait for readiness and its listen
    backlog are those of its variant.
    """
    checks, factors = trial.record.get("conformance") or [], trial.spec["factors"]
    for check in checks:
        if not check["ok"] and f"{check['name']}:" not in trial.record["reason"]:
            yield "DM-CONFORMANCE", f"{check['name']!r} failed, and is not a known deviation"
    passed = {check["name"] for check in checks if check["ok"]}
    seen = [name.removeprefix(WAITS) for name in passed if name.startswith(WAITS)]
    if factors.get("readiness") not in (None, *seen):
        yield "DM-READINESS", f"it waits with {seen}, not {factors['readiness']}"
    if not isinstance(backlog := factors.get("backlog"), int):
        return
    sysctl = (trial.record.get("sysctl") or {}).get("server", {})
    due = min(backlog, int(sysctl.get(SOMAXCONN, backlog)))
    several = not SEVERAL.isdisjoint(factors.items())
    # 0 while nothing listens.
    queues = {row["accept_queue_limit"] for row in trial.rows["samples"]} - {0, None, due}
    for limit in sorted(queue for queue in queues if not several or queue % due):
        yield "DM-BACKLOG", f"a queue of {limit} connections, where {due} were due"


def settings(trial: Trial) -> Seen:
    """Kernel settings were those of the variant."""
    record = trial.record
    seen = (record.get("sysctl") or {}).get("server", {})
    for name, value in trial.spec.get("sysctl", {}).items():
        if str(seen.get(name)).split() != str(value).split():
            yield "DM-SYSCTL", f"{name} was {seen.get(name)}, not {value}"


def other_work(trial: Trial) -> Seen:
    """Neither the hypervisor nor other work took much CPU time from server and client."""
    record, rows = trial.record, trial.rows["samples"]
    if record.get("separate") or not rows:
        return
    samples = pl.DataFrame(rows, schema_overrides=kernel_samples.SCHEMA, infer_schema_length=None)
    used = limits.others(samples, (record.get("machine") or {}).get("cpus") or 1)
    for rate_rps, stolen, others in used.iter_rows():
        if stolen > MOST_STOLEN:
            yield "DM-STEAL", f"{stolen:.0%} of the CPU time was stolen at {rate_rps} req/s"
        if others > MOST_OTHER_WORK:
            yield "DM-NEIGHBOUR", f"{others:.0%} of the CPUs did other work at {rate_rps} req/s"


UNDER_LOAD: tuple[Callable[[Trial], Seen], ...] = (
    sweep, answers, searched, conformance, settings, other_work,
)  # fmt: skip


def wrong_answers(evidence: Evidence) -> Iterator[Finding]:
    """Wrong answers under load are a warning: a reader must know of them in a sound dataset too."""
    for trial in evidence.trials:
        for point in trial.points:
            if wrong := point.get("wrong_answers"):
                at, first = point["offered_rate_rps"], point.get("first_wrong_answer", "not kept")
                text = f"{wrong} wrong answers at {at} req/s, the first: {first}"
                yield Finding("DM-WRONG", "warn", trial.where, text)


def each_trial(evidence: Evidence) -> Iterator[Finding]:
    """Each trial passes all checks of this module."""
    for trial in evidence.trials:
        for look in (outcome, *(UNDER_LOAD if trial.points else ())):
            for check, text in look(trial):
                yield fault(check, trial.where, text)
