"""The ledger: verdicts on the sources' claims, computed from a dataset by the rules of claims.toml.

`ledger(dataset)` returns an entry for each claim, with two verdicts: `then`, on the release and
settings nearest to the source's that ran, and `now`, on today's. `rules` decides a rule, `needs`
says whether the data could speak to it, `releases` which variants stand for then and now. The
header of `data/published/claims.toml` explains all of it.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from deathmatch.analysis import (
    judging,
    needs,
    published,
    releases,
    rules,
    selecting,
    stats,
    trial_tests,
)
from deathmatch.analysis.by_trial import Values, in_shared_blocks
from deathmatch.analysis.judging import (
    DECIDED,
    MINIMUM_TRIALS,
    NOT_RUN,
    OPEN,
    TESTED,
    UNREACHED,
    Compared,
)
from deathmatch.analysis.ledger import Entry, Side, Verdict
from deathmatch.analysis.ledger import read as ledger_of_run
from deathmatch.analysis.ledger import write as write_ledger
from deathmatch.analysis.stats import NO_TRIAL
from deathmatch.data import archive, sittings, table_files
from deathmatch.hosts import sandbox
from deathmatch.plan import designs, files, matrix, paths
from deathmatch.quantities.definitions import QUANTITIES


def ledger(dataset: str) -> list[Entry]:
    """Return both verdicts on every claim, in the order of claims.toml, tested together.

    A claim of `decided_elsewhere` has those of the other dataset.
    """
    elsewhere = decided_elsewhere(dataset)
    others = {
        (name, entry.claim): entry for name in set(elsewhere.values()) for entry in of_dataset(name)
    }
    return marked([
        others.get((elsewhere.get(entry.claim), entry.claim), entry)
        for entry in of_dataset(dataset)
    ])  # fmt: skip


def decided_elsewhere(dataset: str) -> dict[str, str]:
    """Return the claims that a dataset leaves to one of its file's `decided_by`, each with that."""
    others = reversed(table_files.deciders(dataset))
    met = ((name, designs.met(matrix.trials(name))) for name in others)
    return {claim: name for name, claims in met for claim in sorted(claims)}


def of_dataset(dataset: str) -> list[Entry]:
    """Return the ledger of a dataset's own trials alone.

    In a run of Snakemake it is read from the file that the rule `ledger` wrote.
    """
    known = ledger_of_run(dataset)
    if known is not None:
        return known
    sittings.check_complete(dataset)
    return marked([entry(dataset, claim) for claim in published.claims()])


def marked(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries, with what each verdict does not survive of all being tested together.

    The tests are the verdicts of `then` and `now` that have trials enough, one where both are one.
    """
    made = (verdict for entry in entries for verdict in entry.verdicts.values())
    tested = list(filter(is_tested, made))
    fragile = dict(zip(map(id, tested), trial_tests.marks([one.error for one in tested])))

    def mark(verdict: Verdict) -> Verdict:
        return replace(verdict, fragile=fragile.get(id(verdict), ""))

    return [
        replace(entry, then=mark(entry.now if entry.same else entry.then), now=mark(entry.now))
        for entry in entries
    ]


def is_tested(verdict: Verdict) -> bool:
    """Return whether a verdict is that of a test, of trials enough."""
    return verdict.verdict in TESTED and verdict.interval.trials >= MINIMUM_TRIALS


def entry(dataset: str, claim: dict) -> Entry:
    """Return the ledger's entry on one of `published.claims()`."""
    on_then, on_now = releases.then(dataset, claim), releases.now(dataset, claim)
    then = verdict(dataset, on_then)
    same = on_then == on_now
    return Entry(
        claim=claim["id"],
        source=claim["source"],
        place=claim["place"],
        role=claim["role"],
        experiment=claim["experiment"],
        says=claim["claim"],
        rule=claim["rule"]["text"],
        statistics=tuple(sorted(published.statistics_of(claim["rule"]))),
        published=published.effect(claim),
        same=same,
        differences=tuple(d["id"] for d in published.differences() if affects(d, claim)),
        then=then,
        now=then if same else verdict(dataset, on_now),
        quotation=claim.get("quotation", ""),
        dataset=dataset,
    )


def verdict(dataset: str, claim: dict) -> Verdict:
    """Return the verdict on one claim as its rule stands."""
    compared = releases.ages(dataset, claim)
    of_the_time = releases.of_the_time(claim, compared)
    if reason := claim.get("out_of_reach"):
        lacking = needs.Need("a testbed that brings its condition about", reason, met=False)
        return Verdict(
            UNREACHED, ages=compared, of_the_time=of_the_time, why=reason, needs=(lacking,)
        )
    decided = rules.decide(dataset, claim["experiment"], claim["rule"])
    conditions = needs.check(dataset, claim, decided)
    word = needs.verdict(dataset, claim, decided.verdict, conditions)
    why = ""
    if word == NOT_RUN:
        why = not_run_reason(dataset, claim)
    elif word == UNREACHED:
        why = needs.unmet_phrase(conditions)
    quantity = QUANTITIES.get(_statistic(decided.compared))
    return Verdict(
        word,
        decided.interval,
        decided.as_claimed,
        decided.direction if word in DECIDED | {OPEN} else None,
        decided.on_edge,
        judging.error(decided) if word in DECIDED else None,
        ages=compared,
        of_the_time=of_the_time,
        why=why,
        quantity=quantity.title if quantity else "",
        unit=quantity.unit if quantity else "",
        sides=_sides(dataset, decided.compared),
        needs=conditions,
    )


def _statistic(compared: tuple[Compared, ...]) -> str:
    """Return the statistic of what was compared; empty where its sides have different ones."""
    named = {side.selector.get("statistic", side.rule.get("statistic", "")) for side in compared}
    return named.pop() if len(named) == 1 else ""


def _sides(dataset: str, compared: tuple[Compared, ...]) -> tuple[Side, ...]:
    """Return what was divided by what, with the values that were compared."""
    if not compared:
        return ()
    experiment, rule = compared[0].experiment, compared[0].rule
    selectors = [side.selector for side in compared]
    paired = len({selector.get("experiment", experiment) for selector in selectors}) == 1
    known = selecting.compared_values(dataset, experiment, rule, selectors, paired)
    known = in_shared_blocks(known) if paired else known
    return tuple(
        _side(dataset, selector.get("experiment", experiment), selector, values)
        for selector, values in zip(selectors, known, strict=True)
    )


def _side(dataset: str, experiment: str, selector: dict, values: Values) -> Side:
    frame = selecting.selected(dataset, experiment, selector)
    alone = frame is not None and frame.select("server", "variant").n_unique() == 1
    inside = f"{frame['server'][0]}/{frame['variant'][0]}" if alone else ""
    before = archive.logs_prefix(dataset, experiment)
    logs = f"{before}{inside}".rstrip(":/ ") if before else ""
    return Side(selecting.selector_phrase(selector), stats.interval(values.all), logs)


def not_run_reason(dataset: str, claim: dict) -> str:
    """Return why a claim could not be decided at all in a dataset, as the end of a sentence."""
    experiments, servers, columns = set(), set(), set()
    selectors = [{}, *published.selectors(claim["rule"])]
    for selector in selectors:
        experiments.add(selector.get("experiment", claim["experiment"]))
        servers.add(selector.get("server"))
        columns |= selector.keys()
    for name in sorted(str(server) for server in servers if server):
        if name in files.names("server") and not (server := files.server(name)).runs:
            return f"{server.title} could not be run here"
    for column, about in published.planned().items():
        if column in columns:
            return f"no experiment has this column yet: {about}"
    unknown = sorted(published.statistics_of(claim["rule"]) - QUANTITIES.keys())
    if unknown:
        return f"no client records this yet: {unknown[0].replace('_', ' ')}"
    for experiment in sorted(experiments):
        if selecting.points(dataset, experiment) is None:
            return f"the dataset has no experiment {experiment}"
    for selector in selectors[1:]:
        experiment = selector.get("experiment", claim["experiment"])
        if selecting.selected(dataset, experiment, selector, published.free(claim["rule"])) is None:
            return f"the dataset has no {selecting.selector_phrase(selector)} in {experiment}"
    return "the dataset lacks one of its rates"


def affects(difference: dict, claim: dict) -> bool:
    """Return whether a difference between then and now touches what a claim's rule compares."""
    selectors = published.selectors(claim["rule"])
    experiments = {s.get("experiment", claim["experiment"]) for s in [{}, *selectors]}
    if not experiments & set(difference.get("experiments", experiments)):
        return False
    named = difference.get("levels", {}) | (
        {"server": difference["servers"]} if "servers" in difference else {}
    )
    return not named or any(
        s.get(key) in levels for s in selectors for key, levels in named.items()
    )


def differences(dataset: str) -> pl.DataFrame:
    """Return what differs between then and now, each with what its experiment tells.

    Columns: difference (id), name, then, now, tells (in words, empty if no experiment can tell),
    trials, median, low, high.
    """
    rows = []
    for difference in published.differences():
        tells = difference.get("tells")
        worth = rules.compared(dataset, tells["experiment"], tells) if tells else NO_TRIAL
        row = {"difference": difference["id"], "tells": tells["text"] if tells else ""}
        row |= {key: difference[key] for key in ("name", "then", "now")}
        rows.append(row | worth.row)
    text = dict.fromkeys(("difference", "name", "then", "now", "tells"), pl.String)
    return pl.DataFrame(rows, schema=text | stats.INTERVAL)


def main(given: argparse.Namespace) -> int:
    """Write the ledger of the dataset named on the command line."""
    sandbox.die_with_owner()
    paths.check_dataset(given.dataset, "--dataset")
    write_ledger(of_dataset(given.dataset), given.out)
    return 0
