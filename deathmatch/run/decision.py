"""Which variants of a dataset of adaptive rounds go on: what the workflow calls after each look.

In: the trials up to a look, as their folders hold them. Out: `data/<dataset>/rounds/<look>.json`.
A variant goes on while a claim that compares it is inconclusive, until the last look, or until the
budget would not last to the next one; claims that are told soonest come first. From the second look
on, a claim that more trials than there are looks for would not tell is given up: three trials know
too little of their spread to say so.
"""

import argparse
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from deathmatch.analysis import claims, judging, selecting, verdict_words
from deathmatch.data import inventory, tidy
from deathmatch.errors import UserError
from deathmatch.plan import files, rounds, selection
from deathmatch.plan.rounds import Decision
from deathmatch.plan.trial import Trial
from deathmatch.run import progress

HOUR_S = 3600


def main(given: argparse.Namespace) -> int:
    """Write the decision at the look that the command line names, and print it."""
    spec = files.dataset(given.dataset)
    where = f"config/datasets/{given.dataset}.toml"
    if not spec.adaptive:
        remedy = 'write rounds = "adaptive" there to have some'
        raise UserError("the dataset has no adaptive rounds", where, remedy)
    rounds.forget(given.dataset, given.look)
    wanted = selection.given(given).trials(given.dataset, given.look)
    took_s = times(wanted)
    missing = [trial for trial in wanted if trial not in took_s]
    if missing:
        raise UserError(
            f"{len(missing)} of {len(wanted)} trials are not measured yet",
            str(missing[0].path), f"run: snakemake --config dataset={given.dataset}",
        )  # fmt: skip
    budget_s = None if spec.budget_hours is None else HOUR_S * spec.budget_hours
    rows = ledger(given.dataset, wanted)
    found = decide(given.look, rows, took_s, budget_s)
    rounds.write(given.dataset, found)
    print(f"data/{given.dataset}: after {given.look} rounds, {found.why}")
    return 0


def times(trials: Iterable[Trial]) -> dict[Trial, float]:
    """Return how long each of the trials took that are measured, with what Snakemake adds, s."""
    found = {}
    for trial in trials:
        file = inventory.of_trial(trial)
        if file.is_file():
            wall_us = json.loads(file.read_text()).get("wall_us") or 0
            found[trial] = wall_us / 1e6 + progress.OVERHEAD_S
    return found


def ledger(dataset: str, trials: Sequence[Trial]) -> list[dict]:
    """Return the ledger's rows on these trials alone, whose tables need not be written."""
    given = {}
    for name in sorted({trial.experiment.name for trial in trials}):
        own = sorted(inventory.of_trial(t) for t in trials if t.experiment.name == name)
        for table, frame in tidy.frames(name, own).items():
            given[dataset, name, table] = frame
    with selecting.instead(given):
        return claims.ledger(dataset).to_dicts()


def decide(
    look: int, rows: Sequence[dict], took_s: Mapping[Trial, float], budget_s: float | None
) -> Decision:
    """Return which variants go on after a look, given the ledger's rows and what trials took."""
    spent_s = sum(took_s.values())
    going = {named(trial) for trial in took_s if trial.n == look}
    round_s = {
        name: median(s for trial, s in took_s.items() if named(trial) == name) for name in going
    }
    following = rounds.after(look)
    left = _open(rows, going, look)
    chosen: dict[str, None] = {}
    told, beyond = [], 0
    for claim, variants in left.items() if following else ():
        more = [name for name in variants if name not in chosen]
        needed_s = (following - look) * sum(round_s[name] for name in [*chosen, *more])
        if budget_s is not None and spent_s + needed_s > budget_s:
            beyond += 1
            continue
        chosen |= dict.fromkeys(more)
        told.append(claim)
    return Decision(
        look=look, spent_s=round(spent_s, 1), open=tuple(left), further=tuple(sorted(chosen)),
        why=_why(following, len(left), len(told), beyond, len(chosen), len(going)),
    )  # fmt: skip


def named(trial: Trial) -> str:
    """Return how a decision names a trial's variant."""
    return rounds.name_of(trial.experiment.name, trial.server.name, trial.variant.name)


def _open(rows: Iterable[dict], going: set[str], look: int) -> dict[str, list[str]]:
    """Return the claims that further trials may tell, with their variants; the soonest told first.

    A claim whose variants did not all go on so far has no more pairs to come.
    """
    found: dict[str, tuple[float, list[str]]] = {}
    for row in rows:
        for when in verdict_words.WHEN:
            variants = row[f"{when}_variants"]
            if row[when] != judging.OPEN or not variants or not going.issuperset(variants):
                continue
            seconds = row[f"{when}_needed_s"]
            if seconds is None and look > rounds.LOOKS[0]:
                continue
            known_s, known = found.get(row["claim"], (math.inf, []))
            soonest_s = min(known_s, math.inf if seconds is None else seconds)
            found[row["claim"]] = soonest_s, list(dict.fromkeys([*known, *variants]))
    ordered = sorted(found, key=lambda claim: (found[claim][0], claim))
    return {claim: found[claim][1] for claim in ordered}


def _why(following: int | None, left: int, told: int, beyond: int, on: int, of: int) -> str:
    if not left:
        return "of what went on, no claim is open that further trials could tell: it ends"
    open_ones = _some(left, "claim is open", "claims are open")
    if following is None:
        return f"{open_ones}, and there is no further look: it ends"
    if not on:
        return f"{open_ones}, and the budget does not last to the look at {following}: it ends"
    without = f"; for {beyond} the budget does not last" if beyond else ""
    goes = "goes" if on == 1 else "go"
    return f"{open_ones}: {on} of {of} variants {goes} on to {following}, for {told}{without}"


def _some(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
