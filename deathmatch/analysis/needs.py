"""What data must have reached before they can speak to a claim: the `needs` table of a claim.

    check(dataset, claim, judgement)   # each need: what was asked for, what was there

A need that is not met makes a verdict "condition not reached" where it would refute the claim or
leave it open; one that is needed `always` does so where it would replicate it, too.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from deathmatch.analysis import judging, phrases, published, rules, selecting, stats
from deathmatch.analysis.reply_rates import RATE, REPLY
from deathmatch.plan import files
from deathmatch.quantities.definitions import DIED, QUANTITIES

NOT_RECORDED = "not recorded"
# The share of a server's CPU time that the least busy of its processes took.
LEAST_BUSY = "least_busy_process_share"


@dataclass(frozen=True)
class Need:
    """What a claim needs, and what was there instead, in words.

    `always`: unmet, it makes a replication say as little as a refutation.
    """

    needed: str
    there: str
    met: bool
    always: bool = False


def check(dataset: str, claim: dict, judged: judging.Judgement) -> tuple[Need, ...]:
    """Return the needs of a claim; what its judgement lacks is one without being written."""
    needs = []
    for kind, need in claim.get("needs", {}).items():
        text, there, met = _CHECKS[kind](dataset, claim, need)
        why = f" ({need['why']})" if "why" in need else ""
        always = need.get("always", kind in _ALWAYS)
        needs.append(Need(text + why, there, met, always))
    if judged.lacks:
        needs.append(_LACKS[judged.lacks])
    return tuple(needs)


def verdict(dataset: str, claim: dict, decided: str, needs: Sequence[Need]) -> str:
    """Return the verdict of `rules.decide` as what was there allows it."""
    unmet = [need for need in needs if not need.met]
    if not unmet or (decided == judging.NOT_RUN and not _measured(dataset, claim)):
        return decided
    if decided != judging.REPLICATED or any(need.always for need in unmet):
        return judging.UNREACHED
    return decided


def unmet_phrase(needs: Sequence[Need]) -> str:
    """Return which needs were not met, as the end of a sentence; empty if none."""
    return ". ".join(
        f"needed: {need.needed}; there: {need.there}" for need in needs if not need.met
    )


_LACKS = {
    judging.SATURATION: Need(
        "an overload: more requests than a server answers",
        "a server that answered the highest rate in full",
        met=False,
    ),
    judging.CLIENT: Need(
        "a client that is not the limit",
        "a variant that is client-limited in every trial",
        met=False,
    ),
}


def _measured(dataset: str, claim: dict) -> bool:
    """Return whether all that the rule compares ran, with clients that record what it asks."""
    known = published.statistics_of(claim["rule"]) <= QUANTITIES.keys()
    chosen = (
        selecting.selected(dataset, claim["experiment"], selector, published.free(claim["rule"]))
        for selector in published.selectors(claim["rule"])
    )
    return known and all(frame is not None for frame in chosen)


def _frames(dataset: str, claim: dict, table=selecting.points) -> list[pl.DataFrame]:
    """Return the rows of each selector of the rule that has some."""
    chosen = [
        selecting.selected(
            dataset, claim["experiment"], selector, published.free(claim["rule"]), table
        )
        for selector in published.selectors(claim["rule"])
    ]
    rates = [selector.get(RATE) for selector in published.selectors(claim["rule"])]
    if table is selecting.points:
        chosen = [
            selecting.offered(dataset, claim["experiment"], selector)
            if selecting.SHARE in selector
            else frame
            for frame, selector in zip(chosen, published.selectors(claim["rule"]), strict=True)
        ]
    return [
        frame if rate is None or RATE not in frame.columns else frame.filter(pl.col(RATE) == rate)
        for frame, rate in zip(chosen, rates, strict=True)
        if frame is not None
    ]


def _cpus(dataset: str, claim: dict, need: dict) -> tuple[str, str, bool]:
    own = [
        len({*server} - {*(client or ())})
        for frame in _frames(dataset, claim, selecting.trials)
        for server, client in frame.select("server_cpus", "client_cpus").rows()
        if server is not None
    ]
    text = f"{need['at_least']} CPUs of the server on which no client runs"
    return _at_least(text, max(own, default=None), need, "")


def _offered(dataset: str, claim: dict, need: dict) -> tuple[str, str, bool]:
    longest = [frame["duration_us"].max() for frame in _frames(dataset, claim) if len(frame)]
    known = [us / 1e6 for us in longest if us is not None]
    text = f"each rate offered for {need['at_least']} s"
    return _at_least(text, min(known, default=None), need, " s")


def _errors(dataset: str, claim: dict, need: dict) -> tuple[str, str, bool]:
    rule = {"statistic": "error_ratio"}
    shares = stats.interval(selecting.values(dataset, claim["experiment"], rule, need["of"]).all)
    who = selecting.selector_phrase(need["of"])
    text = f"errors: {100 * need['at_least']:g} % of the requests or more, by {who}"
    share = shares.estimate if shares.trials >= judging.MINIMUM_TRIALS else None
    there = NOT_RECORDED if share is None else f"{100 * share:.2g} %"
    return text, there, share is not None and share >= need["at_least"]


def _queue(dataset: str, claim: dict, need: dict) -> tuple[str, str, bool]:
    """Return the longest wait that a rate beyond a server's own can cause while it is offered.

    A queue that grows for T s at an offered rate R and is served at the rate C holds (R - C) T
    requests at its end, the last of which waits (R / C - 1) T.
    """
    waits = []
    for frame in _frames(dataset, claim):
        answered = frame.filter(pl.col(REPLY) > 0)
        wait = (pl.col(RATE) / pl.col(REPLY) - 1) * pl.col("duration_us") / 1e6
        waits.append(answered.select(wait.median()).item())
    known = [max(0.0, wait) for wait in waits if wait is not None]
    text = f"a queue that a request can wait in for {need['at_least']} s"
    return _at_least(text, min(known, default=None), need, " s")


def _rates(dataset: str, claim: dict, need: dict) -> tuple[str, str, bool]:
    frame = selecting.points(dataset, claim["experiment"])
    there = None if frame is None else frame[RATE].n_unique()
    return _at_least(f"{need['at_least']} offered rates", there, need, "")


def _levels(dataset: str, claim: dict, need: dict) -> tuple[str, str, bool]:
    rule = claim["rule"]
    sides = [
        set(selecting.measured_levels(dataset, claim["experiment"], rule | {"where": rule[side]}))
        for side in ("a", "b")
    ]
    text = f"{need['at_least']} levels of {rule['over']} on both sides"
    return _at_least(text, len(set.intersection(*sides)), need, "")


def _descriptors(dataset: str, claim: dict, need: dict) -> tuple[str, str, bool]:
    """Return how many descriptors the server held in the trials that it survived.

    What it held as it died nobody sampled: where it died in each trial, nothing is asked.
    """
    chosen = [
        selecting.selected(dataset, claim["experiment"], selector)
        for selector in published.selectors(claim["rule"])
    ]
    held = [
        frame.group_by("n", maintain_order=True).agg(
            pl.col("server_descriptors_max").max(), died=DIED.any()
        )
        for frame in chosen
        if frame is not None
    ]
    text = f"{phrases.number(need['at_least'])} descriptors open in a server that survived"
    if held and all(frame["died"].all() for frame in held):
        return text, "it died in each trial", True
    highest = [frame.filter(~pl.col("died"))["server_descriptors_max"].median() for frame in held]
    known = [value for value in highest if value is not None]
    return _at_least(text, min(known, default=None), need, "")


def _spread(dataset: str, claim: dict, need: dict) -> tuple[str, str, bool]:
    frames = [frame for frame in _frames(dataset, claim) if LEAST_BUSY in frame.columns]
    known = [share for frame in frames if (share := frame[LEAST_BUSY].min()) is not None]
    text = f"{need['at_least']} of the CPU time or more in the least busy process"
    return _at_least(text, min(known, default=None), need, "")


def _reference(dataset: str, claim: dict, need: dict) -> tuple[str, str, bool]:
    experiment = need.get("experiment", claim["experiment"])
    decided = rules.decide(dataset, experiment, need["rule"]).verdict
    return need["what"], decided, decided == judging.REPLICATED


def _network_card(dataset: str, claim: dict, need: dict) -> tuple[str, str, bool]:
    beds = {
        bed
        for frame in _frames(dataset, claim, selecting.trials)
        for bed in frame["testbed"].drop_nulls()
    }
    known = set(files.names("testbed"))
    kinds = {files.testbed(bed).kind for bed in beds & known}
    virtual = not kinds or "netns" in kinds
    there = "a virtual link" if kinds else NOT_RECORDED
    return "network cards between client and server", there if virtual else "there", not virtual


def _at_least(text: str, there: float | None, need: dict, unit: str) -> tuple[str, str, bool]:
    if there is None:
        return text, NOT_RECORDED, False
    digits = 0 if float(there).is_integer() else 2 if need["at_least"] < 1 else 1
    return text, f"{phrases.number(there, digits)}{unit}", there >= need["at_least"]


_CHECKS: dict[str, Callable] = {
    "cpus": _cpus,
    "offered_s": _offered,
    "errors": _errors,
    "queue_s": _queue,
    "rates": _rates,
    "levels": _levels,
    "descriptors": _descriptors,
    "spread": _spread,
    "reference": _reference,
    "network_card": _network_card,
}
# Without these a replication would say as little as a refutation.
_ALWAYS = {"cpus", "errors", "rates", "levels", "spread", "reference", "network_card"}
