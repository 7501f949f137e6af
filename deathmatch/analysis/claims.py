"""The ledger: verdicts on the sources' claims, computed from a dataset by the rules of claims.toml.

`ledger(dataset)` returns one row a claim, with two verdicts: `then`, on the release and settings
nearest to the source's that ran, and `now`, on today's. `rules` decides a rule, `needs` says
whether the data could speak to it, `releases` which variants stand for then and now. The header of
`data/published/claims.toml` explains all of it.
"""

from pathlib import Path

import polars as pl

from deathmatch.analysis import (
    measures,
    needs,
    phrases,
    prices,
    published,
    releases,
    rules,
    selecting,
    sequential,
    stats,
)
from deathmatch.analysis.judging import (
    INFINITE,
    MINIMUM_TRIALS,
    NOT,
    NOT_RUN,
    OPEN,
    REPLICATED,
    UNREACHED,
    VERDICTS,
)
from deathmatch.analysis.rules import decide
from deathmatch.analysis.selecting import clear_caches
from deathmatch.data import archive
from deathmatch.plan import files
from deathmatch.plan.root import ROOT

__all__ = [
    "MINIMUM_TRIALS",
    "NOT",
    "NOT_RUN",
    "OPEN",
    "REPLICATED",
    "UNREACHED",
    "VERDICTS",
    "WHEN",
    "affects",
    "clear_caches",
    "decide",
    "differences",
    "effect_phrase",
    "effect_text",
    "error_phrase",
    "ledger",
    "not_run_reason",
    "open_rows",
    "row_of",
    "verdicts_phrase",
    "whens",
]  # fmt: skip

WHEN = ("then", "now")
# What nobody would call a factor between a ratio and its threshold.
NO_FACTOR = 1000

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
    # Of an inconclusive one: the difference that could have been told, and what telling it takes.
    **prices.SCHEMA,
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
    found = decide(dataset, claim["experiment"], claim["rule"])
    conditions = needs.check(dataset, claim, found)
    judged = needs.verdict(dataset, claim, found, conditions)
    reason = {
        NOT_RUN: lambda: not_run_reason(dataset, claim),
        UNREACHED: lambda: needs.unmet_phrase(conditions),
    }
    statistic = _statistic(found)
    quantity, unit = measures.title(statistic) if statistic else ("", "")
    return {
        "": judged,
        "effect": found["median"],
        **{name: found[name] for name in ("low", "high", "trials", "direction")},
        "why": reason.get(judged, str)(),
        "quantity": quantity,
        "unit": unit,
        "sides": [_side(dataset, *of) for of in found["compared"]],
        "needs": conditions,
        **prices.of(dataset, found["open"] if judged == OPEN else []),
    }


def _statistic(found: dict) -> str:
    """Return the statistic of what was compared; empty where its sides have different ones."""
    named = {
        selector.get("statistic", rule.get("statistic", ""))
        for _, rule, selector in found["compared"]
    }
    return named.pop() if len(named) == 1 else ""


def _side(dataset: str, experiment: str, rule: dict, selector: dict) -> dict:
    experiment = selector.get("experiment", experiment)
    known = selecting.values(dataset, experiment, rule, selector)
    frame = selecting.selected(dataset, experiment, selector)
    one = frame is not None and frame.select("server", "variant").n_unique() == 1
    folder = Path("data", dataset, experiment)
    packed = folder / archive.NAME
    raw = packed if (ROOT / packed).is_file() else folder
    # Within the archive, trials have the folders that they were measured in.
    inside = f"{frame['server'][0]}/{frame['variant'][0]}" if one else ""
    between = ": " if raw == packed else "/"
    found = stats.interval(list(known.values()))
    return {
        "what": selecting.selector_phrase(selector),
        "raw": f"{raw.as_posix()}{between}{inside}".rstrip(":/ "),
    } | found


def whens(same: bool) -> tuple[str, ...]:
    """Return which verdicts a claim has: both of WHEN, or only now where they are the same."""
    return WHEN[1:] if same else WHEN


def verdicts_phrase(row: dict) -> str:
    """Return a ledger row's verdicts, each with what it compared in brackets; one where alike."""
    parts = []
    for when in whens(row["same"]):
        found = effect_phrase(row, when)
        named = row[when] if row["same"] else f"{when} {row[when]}"
        parts.append(named + (f" ({found})" if found else ""))
    return "; ".join(parts)


def verdict_text(row: dict, when: str) -> str:
    """Return one verdict of a ledger row for a cell, in Markdown, with what it compared.

    Numbers only where it was decided; "the same" for now where one variant stands for both.
    """
    if when == "now" and row["same"]:
        return "the same"
    decided = row[when] in (REPLICATED, NOT, OPEN)
    found = f": {effect_phrase(row, when)}" if decided else ""
    sized = row[when] == NOT and row[f"{when}_direction"] == REPLICATED
    text = f"**{row[when]}**{found}{'; its direction is replicated' if sized else ''}"
    return text.replace("n = ", "n\u00a0=\u00a0")


def unmet_needs(rows: pl.DataFrame) -> pl.DataFrame:
    """Return what claims whose condition was not reached needed: name, says, needed, there.

    `rows` are of the ledger, with `name`, that of the source.
    """
    unmet = [
        {"name": row["name"], "says": row["says"], "needed": need["needed"], "there": need["there"]}
        for row in rows.to_dicts()
        for when in whens(row["same"])
        if row[when] == UNREACHED
        for need in row[f"{when}_needs"]
        if not need["met"]
    ]
    schema = dict.fromkeys(("name", "says", "needed", "there"), pl.String)
    return pl.DataFrame(unmet, schema=schema).unique(maintain_order=True)


def open_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Return what inconclusive verdicts would take, the cheapest first.

    Columns: name, says, when, effect (with its interval), detectable (the factor that its trials
    could have told; null without a spread, or beyond NO_FACTOR), needed (trials in all, in words),
    needed_min (minutes of further trials; null where there are too many). `rows` are of the
    ledger, with `name`, that of the source.
    """
    found = []
    for row in rows.to_dicts():
        for when in whens(row["same"]):
            if row[when] != OPEN:
                continue
            trials, seconds = row[f"{when}_needed_trials"], row[f"{when}_needed_s"]
            told = row[f"{when}_detectable"]
            found.append({
                "name": row["name"],
                "says": row["says"],
                "when": "then and now" if row["same"] else when,
                "effect": effect_text(row, when),
                "detectable": told if told is not None and told < NO_FACTOR else None,
                "needed": f"more than {sequential.LOOKS[-1]}" if trials is None else f"{trials}",
                "needed_min": None if seconds is None else prices.minutes(seconds),
            })  # fmt: skip
    text = dict.fromkeys(("name", "says", "when", "effect"), pl.String)
    kinds = {"detectable": pl.Float64, "needed": pl.String, "needed_min": pl.Int64}
    return pl.DataFrame(found, schema=text | kinds).sort(
        "needed_min", "detectable", nulls_last=True, maintain_order=True
    )


def error_phrase(dataset: str) -> str:
    """Return how often noise about a threshold gives a verdict, and by which test, as sentences."""
    error = f"{100 * sequential.ERROR:.0f} %"
    supposed = (
        "if trials do not depend on each other and their logarithms lean to no side. What happens "
        "or does not, such as a death, is held against the exact binomial interval"
    )
    if not rules.sequentially(dataset):
        widths = [f"{sequential.half_width(n, sequential.ERROR):.1f}" for n in (3, 5)]
        return (
            "Each variant has the trials that were planned, and a claim is looked at once, after "
            "all of them: it is held against Student's t on the logarithms of its ratios, at "
            f"{error}. So often noise about the threshold itself gives a verdict, {supposed} at "
            "the same level. What does not differ between trials at all is decided. After three "
            f"trials the interval is {widths[0]} standard deviations between trials wide to either "
            f"side, after five {widths[1]}."
        )
    looks = [f"{look}" for look in sequential.LOOKS]
    levels = [f"{100 * level:.2f}" for level in sequential.LEVELS.values()]
    hours = files.dataset(dataset).budget_hours
    budget = "" if hours is None else f" and the budget of {60 * hours:.0f} min lasted"
    return (
        "This dataset was measured in adaptive rounds: a variant went on only while a claim that "
        f"compares it was open{budget}. Looking again and again would find what is not there, so "
        f"a claim is held against Student's t after {phrases.enumeration(looks)} trials, on the "
        f"logarithms of its ratios, at {phrases.enumeration(levels)} %; the first look that "
        f"decides is the verdict. Over all looks noise about the threshold gives one {error} of "
        f"the time, {supposed} at the same levels. What does not differ between trials at all is "
        "decided at the first look."
    )


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
    unknown = sorted(published.statistics_of(claim["rule"]) - measures.STATISTICS.keys())
    if unknown:
        return f"no client records this yet: {unknown[0].replace('_', ' ')}"
    for experiment in sorted(experiments):
        if selecting.points(dataset, experiment) is None:
            return f"the dataset has no experiment {experiment}"
    for selector in selectors[1:]:
        experiment = selector.get("experiment", claim["experiment"])
        if selecting.selected(dataset, experiment, selector, _free(claim["rule"])) is None:
            return f"the dataset has no {selecting.selector_phrase(selector)} in {experiment}"
    return "the dataset lacks one of its rates"


def _free(rule: dict) -> frozenset[str]:
    parts = [rule, *rule.get("rules", [])]
    return frozenset(part[key] for part in parts for key in ("over", "each") if key in part)


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


def effect_text(row: dict, when: str = "") -> str:
    """Return an effect as "2.31 [2.20, 2.44], n = 3"; empty without one.

    Of a ledger's row, `when` says which verdict's; without it the keys are effect, low, high and
    trials. An end of the interval that the load left open is given as "at least" or "at most".
    """
    prefix = f"{when}_" if when else ""
    effect, low, high, trials = (row[prefix + name] for name in ("effect", "low", "high", "trials"))
    if effect is None:
        return ""
    if low is None:
        text = _short(effect)
    elif (low, high) == (-INFINITE, INFINITE):
        text = "no limit reached"
    elif high == INFINITE:
        text = f"at least {_short(low)}"
    elif low == -INFINITE:
        text = f"at most {_short(high)}"
    else:
        text = f"{_short(effect)} [{_short(low)}, {_short(high)}]"
    return f"{text}, n = {trials}"


def effect_phrase(row: dict, when: str) -> str:
    """Return what a verdict compared: "reply rate (req/s), A over B: 2.3 [2, 3], n = 3".

    A value alone carries its unit instead; empty where nothing was compared.
    """
    found, sides = effect_text(row, when), row[f"{when}_sides"]
    if not found or not sides:
        return found
    quantity, unit = row[f"{when}_quantity"], row[f"{when}_unit"]
    if len(sides) == 1:
        value, comma, n = found.partition(", n")
        return f"{quantity}, {sides[0]['what']}: {value}{f' {unit}' if unit else ''}{comma}{n}"
    named = f"{quantity}{f' ({unit})' if unit else ''}" if quantity else ""
    over = " over ".join(side["what"] or "all servers" for side in sides[:2])
    return f"{', '.join(filter(None, [named, over]))}: {found}"


def _short(value: float) -> str:
    return phrases.number(value) if abs(value) >= 1000 else f"{value:.3g}"
