"""Rules about the plan: which trials there are, what each was to do, in which order."""

import datetime as dt
import json
from collections.abc import Iterator
from itertools import pairwise

from deathmatch.checks.rule import Finding, Rules, whole
from deathmatch.data.strict.evidence import Evidence
from deathmatch.data.strict.measured import Measured
from deathmatch.data.strict.rule import AGAIN, DESIGN, STATISTICS, loaded
from deathmatch.errors import UserError
from deathmatch.load import registry
from deathmatch.plan import files
from deathmatch.plan.dataset import LEAST_POINT_S, least_overload_s
from deathmatch.plan.record import MEASURED
from deathmatch.quantities.quantity import ALL_ANSWERED, RATE, REPLY

# The servers of a frozen dataset keep the fingerprint that their sources had.
SOURCES = "server_sha256"
# A start is recorded in whole seconds.
SLACK_S = 1
NEAR = dt.timedelta(minutes=30)
"""As long as a round of the reference dataset takes: what began within it is as near as in one."""

SCHEDULE = Rules(AGAIN, whole)


@SCHEDULE.add("DM-MISSING", "reject", DESIGN, "run snakemake: it measures what is missing")
def all_are_there(evidence: Evidence) -> Iterator[Finding]:
    """Every trial that the dataset plans is there: none was left out after it was seen."""
    there = {trial.where for trial in evidence.trials}
    for where in sorted({*evidence.wanted} - there):
        yield Finding("it is planned, and not there", where)


@SCHEDULE.add("DM-REPETITIONS", "reject", STATISTICS, "run snakemake: it measures what is missing")
def repetitions_are_whole(evidence: Evidence) -> Iterator[Finding]:
    """The trials of a variant are numbered from 1 on, and as many as the dataset says or more."""
    numbers: dict[tuple, set[int]] = {}
    least: dict[tuple, int] = {}
    for trial in evidence.trials:
        *variant, n = trial.key
        if n.isdecimal():
            numbers.setdefault(tuple(variant), set()).add(int(n))
        if planned := evidence.planned.get(trial.where):
            least[tuple(variant)] = evidence.dataset.repetitions(planned.plan)
    for variant, there in numbers.items():
        lacking = sorted({*range(1, max(least.get(variant, 1), *there) + 1)} - there)
        if lacking:
            text = f"trial {', '.join(map(str, lacking))} is not there"
            yield Finding(text, "/".join([evidence.named, *variant]))


@SCHEDULE.add("DM-UNPLANNED", "reject", DESIGN, "remove it, or plan it")
def all_are_planned(evidence: Evidence) -> Iterator[Finding]:
    """No trial is there that the dataset cannot have.

    A frozen dataset's plan may have changed since.
    """
    if evidence.dataset.frozen or not evidence.planned:
        return
    for trial in evidence.trials:
        if trial.where not in evidence.planned:
            yield Finding("the dataset has no such trial", trial.where)


@SCHEDULE.add("DM-SPEC", "reject", DESIGN)
def specified_so(evidence: Evidence) -> Iterator[Finding]:
    """Each trial was measured as the dataset, its experiment and its server specify it."""
    for trial in evidence.readable:
        planned = evidence.planned.get(trial.where)
        if planned is None:
            continue
        now = json.loads(planned.spec_text())
        for key in sorted({*now, *trial.spec}):
            if key == SOURCES and evidence.dataset.frozen:
                continue
            if now.get(key) != trial.spec.get(key):
                text = f"{key} is not as specified: {_short(trial.spec.get(key))}"
                yield Finding(text, trial.where)


@SCHEDULE.add("DM-SAME-SPEC", "reject", DESIGN)
def one_specification(evidence: Evidence) -> Iterator[Finding]:
    """All trials of a variant have one specification, and all of an experiment one client, one
    warm-up, and one load but for what factors set.

    Whatever the plan says by now.
    """
    first: dict[tuple, Measured] = {}
    for trial in evidence.readable:
        fellow = first.setdefault(trial.key[:3], trial)
        other = first.setdefault((trial.experiment,), trial)
        keys = [(fellow, key) for key in sorted({*fellow.spec, *trial.spec})]
        keys += [(other, key) for key in ("warm_up_rate_rps", "messages", "client")]
        for reference, key in keys:
            if key == "client" and registry.FACTOR in {*reference.factors, *trial.factors}:
                continue
            if reference.spec.get(key) != trial.spec.get(key):
                yield Finding(f"{key} is not that of {reference.where}", trial.where)
        if _unfactored_load(other) != _unfactored_load(trial):
            yield Finding(f"load is not that of {other.where}", trial.where)


def _unfactored_load(trial: Measured) -> dict:
    """Return what a trial's client was asked for, without what its factors set."""
    load = trial.spec.get("load", {})
    try:
        factors = files.experiment(trial.experiment).factors.values()
    except UserError:
        return load
    own = {factor.load for factor in factors}
    # A server may have its own text.
    return {key: value for key, value in load.items() if key not in own | {"text"}}


@SCHEDULE.add("DM-RATES", "reject", DESIGN, scope=loaded)
def rates_were_offered(trial: Measured) -> Iterator[str]:
    """Each rate of the specification was offered once, in its order; a sweep ends early only where
    the server could not be started again.
    """
    offered = [point["offered_rate_rps"] for point in trial.points]
    planned = trial.spec["rates_rps"]
    ended = "; then " in trial.points[-1]["server_state"]
    if offered != (planned[: len(offered)] if ended else planned):
        yield f"offered {offered}, planned {planned} req/s"


@SCHEDULE.add(
    "DM-POINT-TIME", "note", DESIGN, "in the dataset, set a longer `duration_s` where it decides",
)  # fmt: skip
def points_last(evidence: Evidence) -> Iterator[Finding]:
    """Each rate was offered for 5 s or more."""
    short: dict[str, list[bool]] = {}
    for trial in evidence.loaded:
        is_short = trial.spec["duration_s"] < LEAST_POINT_S
        short.setdefault(trial.experiment, []).extend([is_short] * len(trial.points))
    for name, points in sorted(short.items()):
        if any(points):
            text = f"{sum(points)} of {len(points)} points lasted less than {LEAST_POINT_S} s"
            yield Finding(text, f"{evidence.named}/{name}")


@SCHEDULE.add(
    "DM-OVERLOAD-TIME", "warn", DESIGN,
    "take from these points neither a limit nor an error share; in the dataset, set a longer "
    "`duration_s`, or `overload_shares` of a search",
)  # fmt: skip
def overloads_last(evidence: Evidence) -> Iterator[Finding]:
    """New connections that were not answered in full were offered for twice the client's time-out.

    In less time an overload looks answered: its surplus waits in a queue and has not timed out.
    """
    short: dict[tuple[str, float], list[bool]] = {}
    for trial in evidence.loaded:
        least_s = least_overload_s(trial.spec["load"])
        is_short = trial.spec["duration_s"] < least_s
        over = [row for row in trial.rows if _is_overload(row)]
        short.setdefault((trial.experiment, least_s), []).extend([is_short] * len(over))
    for (name, least_s), points in sorted(short.items()):
        if any(points):
            text = f"{sum(points)} of {len(points)} overloads lasted less than {least_s:g} s"
            yield Finding(text, f"{evidence.named}/{name}")


def _is_overload(row: dict) -> bool:
    reply_rate_rps = row.get(REPLY)
    return reply_rate_rps is not None and reply_rate_rps < ALL_ANSWERED * row[RATE]


@SCHEDULE.add("DM-FRESH", "reject", DESIGN, scope=loaded)
def starts_are_marked(trial: Measured) -> Iterator[str]:
    """A server was started afresh for the first rate, and after each at which it failed, and
    nowhere else.
    """
    due = True
    for point in trial.points:
        if point["fresh_start"] != due:
            start = "a fresh start" if point["fresh_start"] else "no fresh start"
            yield f"{start} at {point['offered_rate_rps']} req/s"
        due = point["server_state"] != "ran"


@SCHEDULE.add(
    "DM-SEED", "reject", STATISTICS,
    "give the dataset the seed that it was measured with, or measure it again", since=2,
)  # fmt: skip
def seed_is_the_datasets(evidence: Evidence) -> Iterator[Finding]:
    """Each trial's place in the order was drawn with the dataset's seed."""
    for trial in evidence.readable:
        seed = trial.record.get("seed")
        if seed != evidence.dataset.seed:
            text = f"seed {seed}, and the dataset's is {evidence.dataset.seed}"
            yield Finding(text, trial.where)


@SCHEDULE.add(
    "DM-ORDER", "note", STATISTICS,
    "nothing, if trials were measured again; else measure the experiment in one run", since=2,
)  # fmt: skip
def order_is_the_drawn_one(evidence: Evidence) -> Iterator[Finding]:
    """The trials of each experiment ran in the order that the seed drew, one round of all variants
    after another.
    """
    # A trial that the dataset may have besides its plan would have been drawn in another order.
    drawn = evidence.wanted or evidence.planned
    place = {where: number for number, where in enumerate(drawn)}
    ran = sorted(evidence.readable, key=lambda trial: trial.record["started_at"])
    orders: dict[str, list[int]] = {}
    for trial in ran:
        if trial.where in place:
            orders.setdefault(trial.experiment, []).append(place[trial.where])
    for experiment, order in orders.items():
        if early := sum(later < earlier for earlier, later in pairwise(order)):
            text = f"{early} of {len(order)} trials ran out of the drawn order"
            yield Finding(text, f"{evidence.named}/{experiment}")


@SCHEDULE.add(
    "DM-INTERLEAVED", "reject", STATISTICS,
    "measure the experiment again in one run, or waive the rule with what they are not compared to",
)  # fmt: skip
def trials_are_interleaved(evidence: Evidence) -> Iterator[Finding]:
    """Each trial ran in its round: neither its variant nor the other was measured again between it
    and most of the round's other trials, or they began within half an hour.

    Ratios are paired by round so that the machine's drift cancels; hours later it does not.
    """
    variants: dict[str, dict[tuple, dict[str, tuple[dt.datetime, str]]]] = {}
    for trial in evidence.readable:
        experiment, *variant, n = trial.key
        began = dt.datetime.fromisoformat(trial.record["started_at"])
        known = variants.setdefault(experiment, {}).setdefault(tuple(variant), {})
        known[n] = (began, trial.where)
    for of_experiment in variants.values():
        for mine in of_experiment.values():
            for n, (_, where) in mine.items():
                others = [one for one in of_experiment.values() if one is not mine and n in one]
                apart = sum(_apart(mine, other, n) for other in others)
                if 2 * apart > len(others):
                    text = f"it did not run in round {n} with {apart} of {len(others)} others"
                    yield Finding(text, where)


def _apart(mine: dict, other: dict, n: str) -> bool:
    """Return whether another trial of either variant began between their trials of a round."""
    first, last = sorted((mine[n][0], other[n][0]))
    again = [began for one in (mine, other) for number, (began, _) in one.items() if number != n]
    return last - first > NEAR and any(first < began < last for began in again)


@SCHEDULE.add(
    "DM-OVERLAP", "warn", DESIGN,
    "on a cluster, nothing: each node measures one; else measure them again",
)  # fmt: skip
def one_at_a_time(evidence: Evidence) -> Iterator[Finding]:
    """No trial began before the one before it had ended: one testbed measures one at a time."""
    timed = sorted(
        (dt.datetime.fromisoformat(trial.record["started_at"]), trial.where, trial)
        for trial in evidence.readable
        if trial.record["outcome"] in MEASURED and trial.record.get("wall_us")
    )
    for (began, earlier, trial), (after, where, _) in pairwise(timed):
        wall = dt.timedelta(microseconds=trial.record["wall_us"])
        if after + dt.timedelta(seconds=SLACK_S) < began + wall:
            yield Finding(f"it began while {earlier} ran", where)


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) < 80 else f"{text[:77]}..."
