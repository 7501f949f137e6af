"""Rules about the load: what was offered is what was specified, and answers were looked at.

MLPerf's compliance tests ask the same of its load generator (TEST01: answers under load are those
of the accuracy run; TEST04: what is asked twice is not answered faster).
"""

import re
from collections.abc import Iterator
from statistics import median

from deathmatch.capacity_search import search
from deathmatch.checks.rule import Finding, Rules, Unknown, whole
from deathmatch.data import probes
from deathmatch.data.strict import echoed
from deathmatch.data.strict.evidence import Evidence
from deathmatch.data.strict.measured import Measured
from deathmatch.data.strict.rule import AGAIN, LOAD, THREATS, loaded
from deathmatch.load import registry
from deathmatch.load.generator import Part
from deathmatch.plan import record as plan
from deathmatch.plan.experiment import spelled_out
from deathmatch.plan.record import ENDED_WELL
from deathmatch.quantities.definitions import CPU_PER_REPLY

ADDRESS = re.compile(r"--server=(\S+) --port=(\d+)|--host=(\S+) --port=(\d+)|ws://([^:]+):(\d+)/")
# SYNs of the harness itself, such as the check that the server still answers.
OWN_CONNECTIONS = 20
# Sequence and connection, four bytes each (clients/wsload/src/payload.rs).
DISTINCT_BYTES = 8
# The factor that varies what httperf asks for.
VALUES = "values"
# What a server may gain by being asked the same again, and the fewest trials of each kind.
CACHED = 0.05
FEWEST = 3

LOADS = Rules(AGAIN, loaded)


def _commands(trial: Measured) -> Iterator[tuple[dict, list[str], dict]]:
    """Return what each client did at each point, the words of its command that were due, and the
    load.
    """
    generator = registry.of_trial(trial.spec)
    for offered in trial.offers:
        clients, rate_rps = offered.clients, offered.point["offered_rate_rps"]
        for index, client in enumerate(clients):
            match = ADDRESS.search(client["command"] or "")
            host, port = [group for group in match.groups() if group] if match else ("", "0")
            words = generator.command(
                host, int(port), offered.load, rate_rps, offered.duration_s,
                Part(index, len(clients)),
            )  # fmt: skip
            yield client, words or [], offered.load


@LOADS.add("DM-COMMAND", "reject", LOAD)
def called_as_specified(trial: Measured) -> Iterator[str]:
    """Each load generator was called with the words that the specification gives it."""
    for load, words, _ in _commands(trial):
        called, due = echoed.command(load["command"] or ""), echoed.command(" ".join(words))
        if called != due:
            lost = [word for word in due if word not in called]
            more = [word for word in called if word not in due]
            yield f"{load['log']}: without {lost}, with {more}"


@LOADS.add("DM-ECHOED-COMMAND", "reject", LOAD)
def reports_repeat_the_settings(trial: Measured) -> Iterator[str | Unknown]:
    """Each report repeats the settings that its load generator was given."""
    client = trial.spec["client"]
    if client not in echoed.ECHOES:
        yield Unknown(f"what {client} repeats is not known")
        return
    in_report, in_command = echoed.ECHOES[client]
    for load, words, asked in _commands(trial):
        seen, due = in_report(trial.log(load["log"])), in_command(words, asked)
        if seen is not None and seen != due:
            keys = sorted(key for key in seen | due if seen.get(key) != due.get(key))
            differ = [f"{key} {seen.get(key)}, not {due.get(key)}" for key in keys]
            yield f"{load['log']}: {'; '.join(differ)}"


@LOADS.add(
    "DM-KEEP-ALIVE", "reject", LOAD,
    "find out who closes connections; measure again, or say so in the server's limits",
)  # fmt: skip
def connections_are_kept(trial: Measured) -> Iterator[str]:
    """Where several requests were to go over a connection, they did: a connection without errors
    has all its replies, and the kernel opened no more connections than the load has.
    """
    load, attempts = trial.spec["load"], registry.of_trial(trial.spec).attempts
    due, planned = load.get("requests_per_connection"), load.get("connections")
    for point, row in trial.pairs:
        if point["server_state"] != "ran" or row.get("errors_total"):
            continue
        at = f"at {row['offered_rate_rps']} req/s"
        length = row.get("connection_length_replies")
        if due and length is not None and row["replies"] and length < 0.99 * due:
            yield f"{length:g} replies a connection, not {due}, {at}"
        if planned and (row.get("connects") or planned) > planned:
            yield f"{row['connects']} connects for {planned} {at}"
        begun, opened = row.get(attempts), row.get("client_active_opens")
        if None not in (begun, opened) and opened > 1.01 * begun + OWN_CONNECTIONS:
            yield f"the kernel opened {opened} connections for {begun} {at}"


@LOADS.add("DM-COMPARED", "reject", LOAD, "measure with a load generator that compares them")
def echoes_were_compared(trial: Measured) -> Iterator[str]:
    """Echoes were compared under load, byte by byte: the report counts those that differ."""
    # The first reports of a load generator may lack further classes.
    counters = registry.of_trial(trial.spec).wrong_besides[:1]
    for row in trial.rows if counters else []:
        for counter in counters:
            if row["report"] == "whole" and row.get(counter) is None:
                yield f"no {counter} at {row['offered_rate_rps']} req/s"
        sizes = row.get("reply_bytes"), row.get("request_bytes")
        if trial.factors.get("layer") == "echo" and sizes[0] != sizes[1]:
            yield f"an echo of {sizes[0]} bytes for {sizes[1]}"


@LOADS.add(
    "DM-ANSWERS", "warn", LOAD,
    "look at these points: a server that answers wrongly under load is a result",
)  # fmt: skip
def answers_were_right(trial: Measured) -> Iterator[str]:
    """No answer under load differed from what was due."""
    generator = registry.of_trial(trial.spec)
    counters = (*generator.wrong_replies, *generator.wrong_besides)
    for row in trial.rows:
        if wrong := sum(row.get(counter) or 0 for counter in counters):
            yield f"{wrong} answers at {row['offered_rate_rps']} req/s"


@LOADS.add("DM-BODY", "reject", LOAD, "find out what the server sends under load; measure again")
def bodies_have_their_length(trial: Measured) -> Iterator[str]:
    """Where httperf got nothing but good answers, their bodies are as long as the conformance check
    asks.
    """
    sizes = _body_bytes(trial)
    for row in trial.rows if sizes else []:
        content, replies = row.get("reply_content_bytes"), row.get("replies")
        wrong = registry.of_trial(trial.spec).wrong(row) if replies else 0
        if content is None or not replies or wrong:
            continue
        # httperf prints whole bytes of a mean.
        if all(abs(content - size) > 0.5 for size in sizes):
            at = f"at {row['offered_rate_rps']} req/s"
            yield f"bodies of {content:g} bytes, not {sorted(sizes)}, {at}"


def _body_bytes(trial: Measured) -> set[int]:
    """Return the lengths of bodies that the checks expect of what httperf asks; none if unknown."""
    uri = trial.spec["load"].get("uri")
    sizes = set()
    for check in trial.spec.get("conformance", []):
        same = check.get("send", "").startswith(f"GET {uri} ") and 200 in check.get("status", [])
        if uri and same and "body" in check:
            sizes.add(len(spelled_out(check["body"]).encode()))
    return sizes


@LOADS.add(
    "DM-PACING", "reject", LOAD,
    "set the experiment's step_s and hold_s, and measure all of its trials with one wsload",
    scope=whole,
)  # fmt: skip
def pacing_is_the_same(evidence: Evidence) -> Iterator[Finding]:
    """WebSocket messages of all trials that are compared were sent at the same pacing, on which CPU
    per message depends: the same step and hold at each rate of an experiment.
    """
    first: dict[tuple[str, int], tuple[str, str]] = {}
    for trial in evidence.loaded:
        if trial.spec["client"] != "wsload":
            continue
        for row in trial.rows:
            rate_rps = row["offered_rate_rps"]
            if row["report"] != "whole":
                continue
            pacing = _pacing(row)
            where, expected = first.setdefault((trial.experiment, rate_rps), (trial.where, pacing))
            if pacing != expected:
                text = f"{pacing} at {rate_rps} messages/s; {where} has {expected}"
                yield Finding(text, trial.where)


def _pacing(row: dict) -> str:
    step_us, hold_us = row.get("client_step_us"), row.get("client_hold_us")
    if step_us is None:
        return "a pacing that was not recorded"
    return f"step {step_us} µs, hold {hold_us} µs"


@LOADS.add("DM-CLIENT", "reject", LOAD)
def clients_ended_well(trial: Measured) -> Iterator[str]:
    """Each load generator ended well, or its report says what it did until it was ended.

    At a server that ran.
    """
    for point in trial.points:
        state = plan.client_state(point)
        if state != ENDED_WELL and point["server_state"] == "ran":
            yield f"{state} at {point['offered_rate_rps']} req/s"


@LOADS.add("DM-SEARCH", "reject", LOAD)
def searched_by_its_rule(trial: Measured) -> Iterator[str]:
    """A search for a capacity offered the rates that its rule gives for the results of its probes,
    and came to what that gives.
    """
    asked = trial.spec.get("search")
    if not asked or trial.damaged:
        return
    offers, end = search.replayed(asked, [probes.result(row) for row in trial.probe_rows])
    made = [
        (probe["offered_rate_rps"], probe["duration_s"], probe["step"], probe["round"])
        for probe in trial.probes
    ]
    due = [(offer.rate_rps, offer.duration_s, offer.step, offer.round) for offer in offers]
    pairs = enumerate(zip(made, due), 1)
    wrong = next(((number, *pair) for number, pair in pairs if pair[0] != pair[1]), None)
    if wrong:
        yield "probe {} offered {}, where {} was due".format(*wrong)
    if end is not None and len(made) != len(due):
        yield f"{len(made)} probes, where {len(due)} were due"
    recorded = trial.record.get("search") or {}
    outcome = end.outcome if end else search.REFUSED
    rate_rps = end.rate_rps if end else None
    if (recorded.get("outcome"), recorded.get("rate_rps")) != (outcome, rate_rps):
        own = f"{recorded.get('outcome')}, {recorded.get('rate_rps')} req/s"
        yield f"it says {own}; its probes give {outcome}, {rate_rps} req/s"


@LOADS.add(
    "DM-VARIED", "note", THREATS,
    "read it as a limit of this dataset: no trial of the experiment varies what it asks for",
    scope=whole,
)  # fmt: skip
def payloads_vary(evidence: Evidence) -> Iterator[Finding]:
    """What is sent varies, so that warm caches and repeated payloads bring nothing.

    Each of wsload's messages carries its own number.
    """
    clients: dict[str, str] = {}
    varied = set()
    for trial in evidence.loaded:
        client, load = trial.spec["client"], trial.spec["load"]
        numbered = client == "wsload" and load["message_bytes"] >= DISTINCT_BYTES
        if trial.factors.get(VALUES) == "varied":
            varied.add(trial.experiment)
        elif not numbered:
            clients.setdefault(trial.experiment, client)
    for experiment in sorted(clients.keys() - varied):
        yield Finding(
            f"{clients[experiment]} repeats one request", f"{evidence.named}/{experiment}"
        )


@LOADS.add(
    "DM-CACHED", "warn", THREATS,
    "say that the server keeps answers, or measure it with varied values alone", scope=whole,
)  # fmt: skip
def repeating_brings_nothing(evidence: Evidence) -> Iterator[Finding]:
    """A repeated request costs the server as much CPU time as varied ones: where every trial of one
    kind costs more than every trial of the other, the medians differ by 5% at most.

    Compares variants that differ in nothing but whether their values vary. Of three trials each,
    all of one kind lie above all of the other by chance in one case of ten.
    """
    costs: dict[tuple, dict[str, list[float]]] = {}
    for trial in evidence.loaded:
        cost = _cpu_us_per_reply(trial)
        if VALUES not in trial.factors or cost is None:
            continue
        others = tuple(item for item in sorted(trial.factors.items()) if item[0] != VALUES)
        sides = costs.setdefault((trial.where.rsplit("/", 2)[0], others), {})
        sides.setdefault(trial.factors[VALUES], []).append(cost)
    for (where, _), sides in sorted(costs.items(), key=str):
        repeated, varied = sides.get("repeated", []), sides.get("varied", [])
        if min(len(repeated), len(varied)) < FEWEST or max(repeated) >= min(varied):
            continue
        ratio = median(varied) / median(repeated)
        if ratio > 1 + CACHED:
            text = (
                f"varied values cost {ratio:.2f} times the CPU time of a repeated one, "
                f"n = {len(varied)} and {len(repeated)}"
            )
            yield Finding(text, where)


def _cpu_us_per_reply(trial: Measured) -> float | None:
    """Return the server's CPU time for each reply over all rates at which it ran, in us."""
    ran = [row for row in trial.rows if row.get("server_cpu_ns") and row.get("replies")]
    if not ran:
        return None
    spent_ns, replies = (sum(row[name] for row in ran) for name in ("server_cpu_ns", "replies"))
    return CPU_PER_REPLY.of_trial.value(spent_ns, replies)
