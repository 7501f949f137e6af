"""The ledger: verdicts on the sources' claims, by the comparisons of data/published/claims.toml.

`ledger(dataset)` returns an entry for each claim, with two verdicts: `then`, on the release and
settings nearest to the source's, and `now`, on today's. All of them and the study's findings are
tested together. The head of claims.toml explains the rest.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace

import polars as pl

from deathmatch.analysis import (
    comparing,
    findings,
    frozen,
    judging,
    published,
    releases,
    selecting,
    stats,
    trial_tests,
    verdict_words,
)
from deathmatch.analysis import ledger as ledgers
from deathmatch.analysis.comparison import Selector
from deathmatch.analysis.findings import Result
from deathmatch.analysis.judging import NOT_RUN, Judgement, Part
from deathmatch.analysis.ledger import Entry, Need, Side, Verdict
from deathmatch.analysis.published import Claim
from deathmatch.data import archive, sittings
from deathmatch.hosts import sandbox
from deathmatch.plan import paths

_LACKS = {
    judging.SATURATION: (
        "an overload: more requests than a server answers",
        "a server that answered the highest rate in full",
    ),
    judging.CLIENT: (
        "a client that is not the limit",
        "a variant that is client-limited in every trial",
    ),
}


def ledger(dataset: str) -> list[Entry]:
    """Return both verdicts on every claim, in the order of claims.toml."""
    return family(dataset)[0]


def findings_of(dataset: str) -> list[Result]:
    """Return the study's findings as a dataset shows them, in the order of findings.toml."""
    return family(dataset)[1]


def family(dataset: str) -> tuple[list[Entry], list[Result]]:
    """Return the ledger of a dataset and its findings, tested together.

    In a run of Snakemake they are read from the file that the rule `ledger` wrote. Raises UserError
    if the dataset has frozen rules, and they are others.
    """
    known = ledgers.read(dataset)
    if known is not None:
        return known
    sittings.check_complete(dataset)
    frozen.check(dataset)
    entries = [entry(dataset, claim) for claim in published.claims()]
    return marked(entries, findings.evaluate(dataset))


def marked(
    entries: Sequence[Entry], results: Sequence[Result] = ()
) -> tuple[list[Entry], list[Result]]:
    """Return entries and findings, each with the corrections that it does not survive.

    The tests are the verdicts of `then` and `now` with enough trials (one test if both are the
    same) and the findings with enough trials.
    """
    made = [verdict for entry in entries for verdict in entry.verdicts.values()]
    tests = [*filter(is_tested, made), *(one for one in results if one.is_tested)]
    marks = trial_tests.marks([one.error for one in tests])
    fragile = dict(zip(map(id, tests), marks))

    def mark(one):
        return replace(one, fragile=fragile.get(id(one), ""))

    return [
        replace(entry, then=mark(entry.now if entry.same else entry.then), now=mark(entry.now))
        for entry in entries
    ], list(map(mark, results))


def is_tested(verdict: Verdict) -> bool:
    """Return whether a verdict is that of a test with enough trials."""
    return verdict.verdict in judging.TESTED and verdict.interval.trials >= judging.MINIMUM_TRIALS


def entry(dataset: str, claim: Claim) -> Entry:
    """Return the ledger's entry on one of `published.claims()`."""
    then = verdict(dataset, claim, "then")
    return Entry(
        claim=claim.id,
        source=claim.source,
        place=claim.place,
        role=claim.role,
        experiment=claim.experiment,
        says=claim.claim,
        rule=claim.text,
        statistics=tuple(sorted({name for one in claim.every for name in one.statistics})),
        published=published.effect(claim),
        same=claim.same,
        then=then,
        now=then if claim.same else verdict(dataset, claim, "now"),
        quotation=claim.quotation,
    )


def verdict(dataset: str, claim: Claim, when: str) -> Verdict:
    """Return the verdict on one claim, then or now."""
    compared = claim.compared(when)
    decided = comparing.judged(dataset, claim.experiment, compared)
    needs = tuple(_needs(dataset, claim, when, decided))
    word, why = decided.verdict, ""
    unmet = [need for need in needs if not need.met]
    if unmet and (
        word != NOT_RUN or all(rows is not None for rows in _compared(dataset, claim, when))
    ):
        word = judging.UNREACHED
        why = ". ".join(f"needed: {need.needed}; there: {need.there}" for need in unmet)
    elif word == NOT_RUN:
        reasons = (comparing.why_absent(dataset, claim.experiment, one) for one in decided.parts)
        why = next(filter(None, reasons), "")
    ages = releases.ages(compared)
    part = decided.part
    quantity = part.comparison.quantity if part else None
    return Verdict(
        word,
        decided.interval,
        decided.as_claimed,
        decided.direction if word in judging.DECIDED | {judging.OPEN} else None,
        decided.on_edge,
        judging.error(decided) if word in judging.DECIDED else None,
        ages=ages,
        of_the_time=releases.of_the_time(claim.source, ages),
        why=why,
        quantity=quantity.title if quantity else "",
        unit=quantity.unit if quantity else "",
        sides=_sides(dataset, claim.experiment, decided),
        needs=needs,
    )


def _needs(dataset: str, claim: Claim, when: str, decided: Judgement) -> Iterator[Need]:
    """Return the conditions that data must reach to decide a claim, and what they reached."""
    for one in claim.conditions(when):
        part = comparing.part(dataset, claim.experiment, one)
        there = verdict_words.effect_text(judging.effect(part.sides, part.paired))
        absent = comparing.why_absent(dataset, claim.experiment, part)
        reached = judging.together([part]).verdict == judging.REPLICATED
        yield Need(one.what, there or absent, reached)
    if decided.lacks == judging.DURATION:
        least_s = max(one.least_s for one in claim.compared(when))
        yield Need(f"points of {least_s} s or more", "shorter ones", met=False)
    elif decided.lacks:
        yield Need(*_LACKS[decided.lacks], met=False)


def _compared(dataset: str, claim: Claim, when: str) -> Iterator[pl.DataFrame | None]:
    """Return the rows of each side of each comparison; None for a side without rows."""
    for one in claim.compared(when):
        for selector in one.sides:
            yield selecting.selected(dataset, claim.experiment, selector)


def _sides(dataset: str, experiment: str, decided: Judgement) -> tuple[Side, ...]:
    """Return the sides of the decisive comparison, with the values that were compared."""
    part = decided.part
    if not part:
        return ()
    return tuple(
        _side(dataset, selector.get("experiment", experiment), selector, values)
        for selector, values in zip(part.comparison.sides, compared_values(part), strict=True)
    )


def compared_values(part: Part) -> list[list[float]]:
    """Return the compared values of each side: those of the blocks that all sides have."""
    blocks = [side.blocks for side in part.sides if side]
    shared = set.intersection(*blocks) if part.paired and blocks else set()
    return [
        [value for n, value in side.by_block.items() if not shared or n in shared]
        for side in part.sides
    ]


def _side(dataset: str, experiment: str, selector: Selector, values: list[float]) -> Side:
    frame = selecting.selected(dataset, experiment, selector)
    alone = frame is not None and frame.select("server", "variant").n_unique() == 1
    inside = f"{frame['server'][0]}/{frame['variant'][0]}" if alone else ""
    before = archive.logs_prefix(dataset, experiment)
    logs = f"{before}{inside}".rstrip(":/ ") if before else ""
    return Side(selecting.selector_phrase(selector), stats.interval(values), logs)


def main(given: argparse.Namespace) -> int:
    """Write the ledger of the dataset named on the command line."""
    sandbox.die_with_owner()
    paths.check_dataset(given.dataset, "--dataset")
    ledgers.write(family(given.dataset), given.out)
    return 0
