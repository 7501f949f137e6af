"""The ledger: verdicts on the sources' claims, computed from a dataset by the rules of claims.toml.

`ledger(dataset)` returns one row a claim, with two verdicts: `then`, on the release and settings
nearest to the source's that ran, and `now`, on today's. `rules` decides a rule, `needs` says
whether the data could speak to it, `releases` which variants stand for then and now. The header of
`data/published/claims.toml` explains all of it.
"""

from pathlib import Path

import polars as pl

from deathmatch.analysis import (
    needs,
    published,
    releases,
    required_trials,
    rules,
    selecting,
    stats,
)
from deathmatch.analysis.judging import NOT_RUN, OPEN, UNREACHED
from deathmatch.analysis.values import Values
from deathmatch.analysis.verdict_words import WHEN
from deathmatch.data import archive
from deathmatch.plan import files
from deathmatch.plan.root import ROOT
from deathmatch.quantities.definitions import QUANTITIES

_SIDE = {
    "what": pl.String,  # the variant, in words
    "median": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "trials": pl.Int64,
    "raw": pl.String,  # the folder of the trials' raw logs, or their archive and the folder in it
}
_VERDICT = {
    "": pl.String,  # the verdict
    "effect": pl.Float64,  # a / b, or a alone, of the part that decides
    "low": pl.Float64,
    "high": pl.Float64,
    "trials": pl.Int64,
    "direction": pl.String,  # the verdict on the direction alone; null where the rule has no size
    "why": pl.String,  # why it was not run, or which condition was not reached
    "quantity": pl.String,  # what was measured, in words
    "unit": pl.String,
    "sides": pl.List(pl.Struct(_SIDE)),  # a, then b: what was divided by what
    "needs": pl.List(pl.Struct(needs.SCHEMA)),
    # What an inconclusive one could have detected, and what deciding it takes.
    **required_trials.SCHEMA,
}
LEDGER = {
    "claim": pl.String,
    "source": pl.String,
    "place": pl.String,
    "role": pl.String,
    "experiment": pl.String,
    "says": pl.String,
    "rule": pl.String,
    "statistics": pl.List(pl.String),
    "published": pl.Float64,
    "same": pl.Boolean,  # one variant stands for then and now
    "differences": pl.List(pl.String),
} | {f"{when}_{name}" if name else when: kind for when in WHEN for name, kind in _VERDICT.items()}


def ledger(dataset: str) -> pl.DataFrame:
    """Return both verdicts on every claim, in the order of claims.toml, with LEDGER's columns.

    `then_…` and `now_…` hold what belongs to each verdict: the effect with its interval is what the
    rule's deciding part compared. `differences` names those that could explain a result other than
    the source's.
    """
    return pl.DataFrame([row_of(dataset, claim) for claim in published.claims()], schema=LEDGER)


def row_of(dataset: str, claim: dict) -> dict:
    """Return the ledger's row on one of `published.claims()`."""
    by_when = {"then": releases.then(dataset, claim), "now": releases.now(dataset, claim)}
    row = {
        "claim": claim["id"],
        "source": claim["source"],
        "place": claim["place"],
        "role": claim["role"],
        "experiment": claim["experiment"],
        "says": claim["claim"],
        "rule": claim["rule"]["text"],
        "statistics": sorted(published.statistics_of(claim["rule"])),
        "published": published.effect(claim),
        "same": by_when["then"] == by_when["now"],
        "differences": [d["id"] for d in published.differences() if affects(d, claim)],
    }
    known: dict | None = None
    for when, chosen in by_when.items():
        found = known if known and row["same"] else verdict(dataset, chosen)
        known = found
        row |= {f"{when}_{name}" if name else when: value for name, value in found.items()}
    return row


def verdict(dataset: str, claim: dict) -> dict:
    """Return the verdict on one claim as its rule stands, with the keys of a ledger's verdict.

    The key "" is the verdict itself, as one of `VERDICTS`.
    """
    found = rules.decide(dataset, claim["experiment"], claim["rule"])
    conditions = needs.check(dataset, claim, found)
    judged = needs.verdict(dataset, claim, found, conditions)
    reason = {
        NOT_RUN: lambda: not_run_reason(dataset, claim),
        UNREACHED: lambda: needs.unmet_phrase(conditions),
    }
    quantity = QUANTITIES.get(_statistic(found))
    return {
        "": judged,
        "effect": found["median"],
        **{name: found[name] for name in ("low", "high", "trials", "direction")},
        "why": reason.get(judged, str)(),
        "quantity": quantity.title if quantity else "",
        "unit": quantity.unit if quantity else "",
        "sides": _sides(dataset, found["compared"]),
        "needs": conditions,
        **required_trials.of(dataset, found["open"] if judged == OPEN else []),
    }


def _statistic(found: dict) -> str:
    """Return the statistic of what was compared; empty where its sides have different ones."""
    named = {
        selector.get("statistic", rule.get("statistic", ""))
        for _, rule, selector in found["compared"]
    }
    return named.pop() if len(named) == 1 else ""


def _sides(dataset: str, compared: list[tuple[str, dict, dict]]) -> list[dict]:
    """Return what was divided by what, with the values that were compared."""
    if not compared:
        return []
    experiment, rule, _ = compared[0]
    selectors = [selector for _, _, selector in compared]
    paired = len({selector.get("experiment", experiment) for selector in selectors}) == 1
    known = selecting.compared_values(dataset, experiment, rule, selectors, paired)
    return [
        _side(dataset, selector.get("experiment", experiment), selector, values)
        for selector, values in zip(selectors, known, strict=True)
    ]


def _side(dataset: str, experiment: str, selector: dict, known: Values) -> dict:
    frame = selecting.selected(dataset, experiment, selector)
    one = frame is not None and frame.select("server", "variant").n_unique() == 1
    folder = Path("data", dataset, experiment)
    packed = folder / archive.NAME
    raw = packed if (ROOT / packed).is_file() else folder
    # Within the archive, trials have the folders that they were measured in.
    inside = f"{frame['server'][0]}/{frame['variant'][0]}" if one else ""
    between = ": " if raw == packed else "/"
    found = stats.interval(known.all)
    return {
        "what": selecting.selector_phrase(selector),
        "raw": f"{raw.as_posix()}{between}{inside}".rstrip(":/ "),
    } | found


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
    for one in published.differences():
        tells = one.get("tells")
        rule = {"kind": "ratio", "threshold": 1, "direction": "above"} | (tells or {})
        found = stats.interval([])
        if tells:
            found, _, _ = rules.compared(dataset, tells["experiment"], rule)
        row = {"difference": one["id"], "tells": tells["text"] if tells else ""}
        rows.append(row | {key: one[key] for key in ("name", "then", "now")} | found)
    text = dict.fromkeys(("difference", "name", "then", "now", "tells"), pl.String)
    return pl.DataFrame(rows, schema=text | stats.INTERVAL)
