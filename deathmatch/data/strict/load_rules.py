"""Rules about the load: what was offered is what was specified, and answers were looked at.

MLPerf's compliance tests ask the same of its load generator (TEST01: answers under load are those
of the accuracy run; TEST04: what is asked twice is not answered faster).
"""

import re
from collections.abc import Iterator
from statistics import median

from deathmatch.data.strict import echoed
from deathmatch.data.strict.evidence import Evidence, Measured
from deathmatch.data.strict.rule import AGAIN, LOAD, THREATS, Seen, Unknown, rule
from deathmatch.load import registry
from deathmatch.load.generator import Part
from deathmatch.measure import conformance, probes, search
from deathmatch.plan import record as plan
from deathmatch.plan.record import ENDED_WELL

ADDRESS = re.compile(r"--server=(\S+) --port=(\d+)|--host=(\S+) --port=(\d+)|ws://([^:]+):(\d+)/")
# SYNs of the harness itself, such as the check that the server still answers.
OWN_CONNECTIONS = 20
# Sequence and connection, four bytes each (clients/wsload/src/payload.rs).
DISTINCT_BYTES = 8
# The factor that varies what httperf asks for.
VALUES = "values"
# What a server may gain by being asked the same again; and of how many trials of each kind on.
CACHED = 0.05
FEWEST = 3


def _commands(
    trial: Measured, point: dict, duration_s: float, asked: dict
) -> Iterator[tuple[dict, list[str]]]:
    """Return what each client did at a point, with the words that it should have been told."""
    generator, loads = registry.generator(trial.spec["client"]), plan.loads(point)
    for index, load in enumerate(loads):
        found = ADDRESS.search(load["command"] or "")
        host, port = [group for group in found.groups() if group] if found else ("", "0")
        words = generator.command(
            host, int(port), asked, point["offered_rate_rps"], duration_s,
            Part(index, len(loads)),
        )  # fmt: skip
        yield load, words or []


@rule(
    "DM-COMMAND", LOAD, "reject",
    "Each load generator was called with the words that the specification gives it.", AGAIN,
)  # fmt: skip
def called_as_specified(evidence: Evidence) -> Iterator[Seen]:
    """Look for flags that were lost or changed."""
    for trial in evidence.loaded:
        for offer in trial.offers:
            for load, words in _commands(trial, *offer):
                told, due = echoed.command(load["command"] or ""), echoed.command(" ".join(words))
                if told != due:
                    lost = [word for word in due if word not in told]
                    more = [word for word in told if word not in due]
                    yield Seen(trial.where, f"{load['log']}: without {lost}, with {more}")


@rule(
    "DM-ECHOED-COMMAND", LOAD, "reject",
    "Each report repeats the settings that its load generator was told.", AGAIN,
)  # fmt: skip
def reports_repeat_the_settings(evidence: Evidence) -> Iterator[Seen | Unknown]:
    """Look for reports of another load than the record says."""
    for trial in evidence.loaded:
        client = trial.spec["client"]
        if client not in echoed.ECHOES:
            yield Unknown(trial.where, f"what {client} repeats is not known")
            continue
        said, told = echoed.ECHOES[client]
        for point, duration_s, asked in trial.offers:
            for load, words in _commands(trial, point, duration_s, asked):
                found, due = said(trial.log(load["log"])), told(words, asked)
                if found is not None and found != due:
                    keys = sorted(k for k in {*found, *due} if found.get(k) != due.get(k))
                    each = [f"{key} {found.get(key)}, not {due.get(key)}" for key in keys]
                    yield Seen(trial.where, f"{load['log']}: {'; '.join(each)}")


@rule(
    "DM-KEEP-ALIVE", LOAD, "reject",
    "Where several requests were to go over a connection, they did: a connection without errors "
    "has all its replies, and the kernel opened no more connections than the load has.",
    "find out who closes connections; measure again, or say so in the server's limits",
)  # fmt: skip
def connections_are_kept(evidence: Evidence) -> Iterator[Seen]:
    """Look for keep-alive that is silently off."""
    for trial in evidence.loaded:
        for point, row in trial.pairs:
            due = trial.spec["load"].get("requests_per_connection")
            if point["server_state"] != "ran" or row.get("errors_total"):
                continue
            at = f"at {row['offered_rate_rps']} req/s"
            length = row.get("connection_length_replies")
            if due and length is not None and row["replies"] and length < 0.99 * due:
                yield Seen(trial.where, f"{length:g} replies a connection, not {due}, {at}")
            planned = trial.spec["load"].get("connections")
            if planned and (row.get("connects") or planned) > planned:
                yield Seen(trial.where, f"{row['connects']} connects for {planned} {at}")
            begun = row.get(registry.generator(trial.spec["client"]).attempts)
            opened = row.get("client_active_opens")
            if None not in (begun, opened) and opened > 1.01 * begun + OWN_CONNECTIONS:
                yield Seen(trial.where, f"the kernel opened {opened} connections for {begun} {at}")


@rule(
    "DM-COMPARED", LOAD, "reject",
    "Echoes were compared under load, byte by byte: the report counts those that differ.",
    "measure with a load generator that compares them",
)  # fmt: skip
def echoes_were_compared(evidence: Evidence) -> Iterator[Seen]:
    """Look for reports that cannot say whether an echo was one."""
    counters = {"wsload": "messages_mismatched", "roundtrip": "errors_answer_different"}
    for trial in evidence.loaded:
        counter = counters.get(trial.spec["client"])
        for row in trial.rows if counter else []:
            if row["report"] == "whole" and row.get(counter) is None:
                yield Seen(trial.where, f"no {counter} at {row['offered_rate_rps']} req/s")
            if trial.factors.get("layer") == "echo" and row.get("reply_bytes") != row.get(
                "request_bytes"
            ):
                sizes = f"{row.get('reply_bytes')} bytes for {row.get('request_bytes')}"
                yield Seen(trial.where, f"an echo of {sizes}")


@rule(
    "DM-ANSWERS", LOAD, "warn",
    "No answer under load differed from what was due.",
    "look at these points: a server that answers wrongly under load is a result",
)  # fmt: skip
def answers_were_right(evidence: Evidence) -> Iterator[Seen]:
    """Tell where answers under load were wrong."""
    for trial in evidence.loaded:
        for row in trial.rows:
            wrong = (row.get("messages_mismatched") or 0) + (
                row.get("errors_answer_different") or 0
            )
            if row.get("replies_2xx") is not None:
                wrong += (row.get("replies") or 0) - row["replies_2xx"]
            if wrong:
                yield Seen(trial.where, f"{wrong} answers at {row['offered_rate_rps']} req/s")


@rule(
    "DM-BODY", LOAD, "reject",
    "Where httperf got nothing but good answers, their bodies are as long as the conformance check "
    "asks.",
    "find out what the server sends under load; measure again",
)  # fmt: skip
def bodies_have_their_length(evidence: Evidence) -> Iterator[Seen]:
    """Look for answers that are shorter or longer under load than when they were checked."""
    for trial in evidence.loaded:
        sizes = _body_bytes(trial)
        for row in trial.rows if sizes else []:
            content, replies = row.get("reply_content_bytes"), row.get("replies")
            if content is None or not replies or row["replies_2xx"] != replies:
                continue
            # httperf prints whole bytes of a mean.
            if all(abs(content - size) > 0.5 for size in sizes):
                at = f"at {row['offered_rate_rps']} req/s"
                yield Seen(trial.where, f"bodies of {content:g} bytes, not {sorted(sizes)}, {at}")


def _body_bytes(trial: Measured) -> set[int]:
    """Return the lengths of bodies that the checks expect of what httperf asks; none if unknown."""
    uri = trial.spec["load"].get("uri")
    sizes = set()
    for check in trial.spec.get("conformance", []):
        asked = check.get("send", "").startswith(f"GET {uri} ") and 200 in check.get("status", [])
        if uri and asked and "body" in check:
            sizes.add(len(conformance.spelled_out(check["body"]).encode()))
    return sizes


@rule(
    "DM-CLIENT", LOAD, "reject",
    "Each load generator ended well, or its report says what it did until it was ended.", AGAIN,
)  # fmt: skip
def clients_ended_well(evidence: Evidence) -> Iterator[Seen]:
    """Look for load generators that failed at a server that ran."""
    for trial in evidence.loaded:
        for point in trial.points:
            state = plan.client_state(point)
            if state != ENDED_WELL and point["server_state"] == "ran":
                yield Seen(trial.where, f"{state} at {point['offered_rate_rps']} req/s")


@rule(
    "DM-SEARCH", LOAD, "reject",
    "A search for a capacity offered the rates that its rule gives for what its probes told, and "
    "came to what that gives.",
    AGAIN,
)  # fmt: skip
def searched_by_its_rule(evidence: Evidence) -> Iterator[Seen]:
    """Look for probes that were left out, added or changed, and for another result."""
    for trial in evidence.loaded:
        asked = trial.spec.get("search")
        if not asked or trial.damaged:
            continue
        offers, end = search.replayed(asked, [probes.told(row) for row in trial.probe_rows])
        made = [
            (one["offered_rate_rps"], one["duration_s"], one["step"], one["round"])
            for one in trial.probes
        ]
        due = [(one.rate_rps, one.duration_s, one.step, one.round) for one in offers]
        for number, (one, other) in enumerate(zip(made, due), 1):
            if one != other:
                yield Seen(trial.where, f"probe {number} offered {one}, where {other} was due")
                break
        if end is not None and len(made) != len(due):
            yield Seen(trial.where, f"{len(made)} probes, where {len(due)} were due")
        said = trial.record.get("search") or {}
        outcome = end.outcome if end else search.REFUSED
        rate_rps = end.rate_rps if end else None
        if (said.get("outcome"), said.get("rate_rps")) != (outcome, rate_rps):
            told = f"{said.get('outcome')}, {said.get('rate_rps')} req/s"
            yield Seen(trial.where, f"it says {told}; its probes give {outcome}, {rate_rps} req/s")


@rule(
    "DM-VARIED", THREATS, "note",
    "What is sent varies, so that warm caches and repeated payloads bring nothing.",
    "read it as a limit of this dataset: no trial of the experiment varies what it asks for",
)  # fmt: skip
def payloads_vary(evidence: Evidence) -> Iterator[Seen]:
    """Tell of experiments that repeat one request; wsload's messages carry their own number."""
    repeated: dict[str, str] = {}
    varied = {trial.experiment for trial in evidence.loaded if _varied(trial)}
    for trial in evidence.loaded:
        client, load = trial.spec["client"], trial.spec["load"]
        if client == "wsload" and load["message_bytes"] >= DISTINCT_BYTES:
            continue
        if trial.experiment not in varied:
            repeated.setdefault(trial.experiment, client)
    for experiment, client in sorted(repeated.items()):
        yield Seen(f"{evidence.named}/{experiment}", f"{client} repeats one request")


def _varied(trial: Measured) -> bool:
    return trial.factors.get(VALUES) == "varied"


@rule(
    "DM-CACHED", THREATS, "warn",
    "A repeated request costs the server as much CPU time as varied ones: where every trial of one "
    f"kind costs more than every trial of the other, the medians differ by {CACHED:.0%} at most.",
    "say that the server keeps answers, or measure it with varied values alone",
)  # fmt: skip
def repeating_brings_nothing(evidence: Evidence) -> Iterator[Seen]:
    """Compare the trials of variants that differ in nothing but whether their values vary.

    Of three trials each, all of one kind lie above all of the other by chance in one case of ten.
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
        repeated, varied = sorted(sides.get("repeated", [])), sorted(sides.get("varied", []))
        if min(len(repeated), len(varied)) < FEWEST or max(repeated) >= min(varied):
            continue
        ratio = median(varied) / median(repeated)
        if ratio > 1 + CACHED:
            yield Seen(
                where, f"varied values cost {ratio:.2f} times the CPU time of a repeated one, "
                f"n = {len(varied)} and {len(repeated)}",
            )  # fmt: skip


def _cpu_us_per_reply(trial: Measured) -> float | None:
    """Return the server's CPU time for each reply over all rates at which it ran, in us."""
    ran = [row for row in trial.rows if row.get("server_cpu_ns") and row.get("replies")]
    if not ran:
        return None
    return sum(row["server_cpu_ns"] for row in ran) / 1000 / sum(row["replies"] for row in ran)


RULES = (
    called_as_specified, reports_repeat_the_settings, connections_are_kept, echoes_were_compared,
    answers_were_right, bodies_have_their_length, clients_ended_well, searched_by_its_rule,
    payloads_vary, repeating_brings_nothing,
)  # fmt: skip
