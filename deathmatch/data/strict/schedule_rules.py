"""Rules about the plan: which trials there are, what each was to do, in which order."""

import datetime as dt
import json
from collections.abc import Iterator
from itertools import pairwise

from deathmatch.data.strict.evidence import Evidence, Measured
from deathmatch.data.strict.rule import AGAIN, DESIGN, Seen, rule
from deathmatch.errors import UserError
from deathmatch.plan import files
from deathmatch.plan.record import MEASURED

STATISTICS = "sec-method-statistics"
# Of the sources, a frozen dataset keeps the fingerprint that its servers had.
SOURCES = "server_sha256"
# A start is told in whole seconds.
SLACK_S = 1


@rule(
    "DM-MISSING", DESIGN, "reject",
    "Every trial that the dataset plans is there: none was left out after it was seen.",
    "run snakemake: it measures what is missing",
)  # fmt: skip
def all_are_there(evidence: Evidence) -> Iterator[Seen]:
    """Look for trials that are missing."""
    there = {trial.where for trial in evidence.trials}
    for where in sorted({*evidence.wanted} - there):
        yield Seen(where, "it is planned, and not there")


@rule(
    "DM-REPETITIONS", STATISTICS, "reject",
    "The trials of a variant are numbered from 1 on, and as many as the dataset says or more.",
    "run snakemake: it measures what is missing",
)  # fmt: skip
def repetitions_are_whole(evidence: Evidence) -> Iterator[Seen]:
    """Look for repetitions that were picked from."""
    numbers: dict[tuple, set[int]] = {}
    least: dict[tuple, int] = {}
    for trial in evidence.trials:
        *variant, n = trial.key
        if n.isdecimal():
            numbers.setdefault(tuple(variant), set()).add(int(n))
        if planned := evidence.planned.get(trial.where):
            least[tuple(variant)] = evidence.dataset.repetitions(planned.plan)
    for variant, found in numbers.items():
        lacking = sorted({*range(1, max(least.get(variant, 1), *found) + 1)} - found)
        if lacking:
            where = "/".join([evidence.named, *variant])
            yield Seen(where, f"trial {', '.join(map(str, lacking))} is not there")


@rule(
    "DM-UNPLANNED", DESIGN, "reject",
    "No trial is there that the dataset cannot have.", "remove it, or plan it",
)  # fmt: skip
def all_are_planned(evidence: Evidence) -> Iterator[Seen]:
    """Look for trials of another plan; a frozen dataset's plan may have changed since."""
    if evidence.dataset.frozen or not evidence.planned:
        return
    for trial in evidence.trials:
        if trial.where not in evidence.planned:
            yield Seen(trial.where, "the dataset has no such trial")


@rule(
    "DM-SPEC", DESIGN, "reject",
    "Each trial was measured as the dataset, its experiment and its server specify it.", AGAIN,
)  # fmt: skip
def specified_so(evidence: Evidence) -> Iterator[Seen]:
    """Look for trials of another specification."""
    for trial in evidence.readable:
        planned = evidence.planned.get(trial.where)
        if planned is None:
            continue
        now = json.loads(planned.spec_text())
        keys = sorted(key for key in {*now, *trial.spec} if now.get(key) != trial.spec.get(key))
        if evidence.dataset.frozen and SOURCES in keys:
            keys.remove(SOURCES)
        for key in keys:
            yield Seen(trial.where, f"{key} is not as specified: {_short(trial.spec.get(key))}")


@rule(
    "DM-SAME-SPEC", DESIGN, "reject",
    "All trials of a variant have one specification, and all of an experiment one client, one "
    "warm-up, and one load but for what factors set.",
    AGAIN,
)  # fmt: skip
def one_specification(evidence: Evidence) -> Iterator[Seen]:
    """Look for trials that did something else than their fellows, whatever the plan says."""
    first: dict[tuple, Measured] = {}
    for trial in evidence.readable:
        fellow = first.setdefault(trial.key[:3], trial)
        for key in sorted({*fellow.spec, *trial.spec}):
            if fellow.spec.get(key) != trial.spec.get(key):
                yield Seen(trial.where, f"{key} is not that of {fellow.where}")
        other = first.setdefault((trial.experiment,), trial)
        for key in ("warm_up_rate_rps", "messages", "client"):
            if other.spec.get(key) != trial.spec.get(key):
                yield Seen(trial.where, f"{key} is not that of {other.where}")
        if _unfactored_load(other) != _unfactored_load(trial):
            yield Seen(trial.where, f"load is not that of {other.where}")


def _unfactored_load(trial: Measured) -> dict:
    """Return what a trial's client was asked for, without what its factors set."""
    load = trial.spec.get("load", {})
    try:
        factors = files.experiment(trial.experiment).factors.values()
    except UserError:
        return load
    own = {factor.load for factor in factors}
    # A server's own: it takes text alone.
    return {key: value for key, value in load.items() if key not in own | {"text"}}


@rule(
    "DM-RATES", DESIGN, "reject",
    "Each rate of the specification was offered once, in its order; a sweep ends early only where "
    "the server could not be started again.",
    AGAIN,
)  # fmt: skip
def rates_were_offered(evidence: Evidence) -> Iterator[Seen]:
    """Look for rates that are missing or doubled."""
    for trial in evidence.loaded:
        offered = [point["offered_rate_rps"] for point in trial.points]
        planned = trial.spec["rates_rps"]
        ended = "; then " in trial.points[-1]["server_state"]
        if offered != (planned[: len(offered)] if ended else planned):
            yield Seen(trial.where, f"offered {offered}, planned {planned} req/s")


@rule(
    "DM-FRESH", DESIGN, "reject",
    "A server was started afresh for the first rate, and after each at which it failed, and "
    "nowhere else.",
    AGAIN,
)  # fmt: skip
def starts_are_marked(evidence: Evidence) -> Iterator[Seen]:
    """Look for restarts that no failure explains."""
    for trial in evidence.loaded:
        due = True
        for point in trial.points:
            if point["fresh_start"] != due:
                told = "a fresh start" if point["fresh_start"] else "no fresh start"
                yield Seen(trial.where, f"{told} at {point['offered_rate_rps']} req/s")
            due = point["server_state"] != "ran"


@rule(
    "DM-SEED", STATISTICS, "reject",
    "Each trial's place in the order was drawn with the dataset's seed.",
    "give the dataset the seed that it was measured with, or measure it again", since=2,
)  # fmt: skip
def seed_is_the_datasets(evidence: Evidence) -> Iterator[Seen]:
    """Look for trials of another seed."""
    for trial in evidence.readable:
        seed = trial.record.get("seed")
        if seed != evidence.dataset.seed:
            yield Seen(trial.where, f"seed {seed}, and the dataset's is {evidence.dataset.seed}")


@rule(
    "DM-ORDER", STATISTICS, "note",
    "The trials of each experiment ran in the order that the seed drew, one round of all variants "
    "after another.",
    "nothing, if trials were measured again; else measure the experiment in one run",
    since=2,
)  # fmt: skip
def order_is_the_drawn_one(evidence: Evidence) -> Iterator[Seen]:
    """Tell how many trials ran before one that was drawn earlier."""
    # What may be in a dataset besides its plan would have been drawn in another order.
    drawn = evidence.wanted or evidence.planned
    place = {where: number for number, where in enumerate(drawn)}
    ran = sorted(evidence.readable, key=lambda trial: trial.record["started_at"])
    orders: dict[str, list[int]] = {}
    for trial in ran:
        if trial.where in place:
            orders.setdefault(trial.experiment, []).append(place[trial.where])
    for experiment, order in orders.items():
        if early := sum(later < earlier for earlier, later in pairwise(order)):
            told = f"{early} of {len(order)} trials ran out of the drawn order"
            yield Seen(f"{evidence.named}/{experiment}", told)


@rule(
    "DM-OVERLAP", DESIGN, "warn",
    "No trial began before the one before it had ended: one testbed measures one at a time.",
    "on a cluster, nothing: each node measures one; else measure them again",
)  # fmt: skip
def one_at_a_time(evidence: Evidence) -> Iterator[Seen]:
    """Look for trials beside each other."""
    timed = sorted(
        (dt.datetime.fromisoformat(trial.record["started_at"]), trial.where, trial)
        for trial in evidence.readable
        if trial.record["outcome"] in MEASURED and trial.record.get("wall_us")
    )
    for (began, _, trial), (after, where, _) in pairwise(timed):
        wall = dt.timedelta(microseconds=trial.record["wall_us"])
        if after + dt.timedelta(seconds=SLACK_S) < began + wall:
            yield Seen(where, f"it began while {trial.where} ran")


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) < 80 else f"{text[:77]}..."


RULES = (
    all_are_there, repetitions_are_whole, all_are_planned, specified_so, one_specification,
    rates_were_offered, starts_are_marked, seed_is_the_datasets, order_is_the_drawn_one,
    one_at_a_time,
)  # fmt: skip
