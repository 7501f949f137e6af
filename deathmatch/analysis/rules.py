"""How one rule of claims.toml is decided on a dataset.

A statistic is first taken of each trial, by block (the trial's number); ratios are paired within a
block. The header of `data/published/claims.toml` says how each kind of rule is decided.
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

import polars as pl
from scipy.stats import spearmanr

from deathmatch.analysis import (
    judging,
    measures,
    phrases,
    published,
    sequential,
    stats,
    views,
)
from deathmatch.analysis.judging import (
    CLIENT,
    CLOCK_STEP_US,
    INFINITE,
    MINIMUM_TRIALS,
    NOT,
    NOT_RUN,
    OPEN,
    REPLICATED,
    SATURATION,
    UNREACHED,
    VERDICTS,
    AtLeast,
    AtMost,
    Outcome,
    Rounded,
    Unbounded,
    Values,
    claimed_range,
    explained,
    judgement,
    not_run,
    opened,
    quotient,
)
from deathmatch.analysis.measures import PEAK
from deathmatch.analysis.views import ALL_ANSWERED, RATE
from deathmatch.data import laws, tables
from deathmatch.errors import UserError
from deathmatch.plan import files

__all__ = [
    "CLIENT",
    "CLOCK_STEP_US",
    "INFINITE",
    "MINIMUM_TRIALS",
    "NOT",
    "NOT_RUN",
    "OPEN",
    "REPLICATED",
    "SATURATION",
    "UNREACHED",
    "VERDICTS",
    "Values",
    "by_medians",
    "clear_caches",
    "compared",
    "decide",
    "instead",
    "measured_levels",
    "points",
    "selected",
    "selector_phrase",
    "sequentially",
    "trials",
    "values",
]  # fmt: skip

ROUNDED = {"response_time_mean_us"}
OUTCOMES = {"client_died", "died"}
# Of a rule with several parts, the first of these that a part has.
_DECISIVE = (NOT, NOT_RUN, UNREACHED, OPEN, REPLICATED)
# Keys of a selector that are no columns.
OWN = ("statistic", "experiment", "relative_to", RATE)


def decide(dataset: str, experiment: str, rule: dict) -> dict:
    """Return the verdict on one rule, with the interval of the part that decides it.

    Keys: those of `stats.INTERVAL`; `verdict`; `direction`, the verdict on the direction alone
    where the rule has a size, else None; `lacks`, SATURATION or CLIENT where that kept the data
    from deciding; `compared`, (experiment, rule, selector) of what was divided by what; `spread`,
    the standard deviation of the ratio's logarithm between trials, and `distance` from the nearest
    bound to the claimed range, a logarithm, None where there is none; `open`, of a rule that is
    inconclusive, each such part.
    """
    parts = list(_PARTS[rule["kind"]](dataset, experiment, rule))
    if not parts:
        return not_run()
    # The clearest part that refutes; of a rule that holds, the part that holds most narrowly.
    worst = min(_DECISIVE.index(part["verdict"]) for part in parts)
    least = [part for part in parts if part["verdict"] == _DECISIVE[worst]]
    sign = -1 if _DECISIVE[worst] == NOT else 1
    decisive = min(least, key=lambda part: sign * part.get("margin", 0))
    known = [part["direction"] for part in parts]
    direction = None if None in known else min(known, key=_DECISIVE.index)
    undecided = [inner for part in parts for inner in part["open"] or [part]]
    still_open = [part for part in undecided if part["verdict"] == OPEN]
    return decisive | {"direction": direction, "open": still_open}


def values(dataset: str, experiment: str, rule: dict, selector: dict) -> Values:
    """Return a selector's statistic for each block; empty if nothing was measured so."""
    experiment = selector.get("experiment", experiment)
    statistic = selector.get("statistic", rule.get("statistic"))
    frame = selected(dataset, experiment, selector)
    if frame is None or statistic not in measures.STATISTICS:
        return Values()
    found = of_trials(frame, statistic, selector)
    if "relative_to" not in selector:
        return found
    plain = {key: level for key, level in selector.items() if key != "relative_to"}
    base = values(dataset, experiment, rule, plain | selector["relative_to"])
    blocks = sorted(found.keys() & base.keys())
    quotients = Values({n: _divided(found[n], base[n]) for n in blocks if base[n]})
    quotients.hidden = found.hidden or base.hidden
    return quotients


def of_trials(frame: pl.DataFrame, statistic: str, selector: dict) -> Values:
    """Return a statistic of each trial, by block, of the points of one variant.

    At the selector's offered rate, if it names one. Points that break a law, or at which the client
    was the limit, do not count.
    """
    top = measures.hardest(frame) if RATE in frame.columns else None
    if RATE in selector:
        frame = frame.filter(pl.col(RATE) == selector[RATE])
    valid = frame
    if not statistic.startswith("client_") and "client_limited" in frame.columns:
        # Without a report only the server's end is known.
        told = statistic == "died" or pl.col("report").ne_missing("truncated")
        excused = (laws.STEADY,) if statistic in measures.OF_THE_COURSE else ()
        valid = laws.upheld(frame, excused).filter(~pl.col("client_limited"), told)
    found = Values(
        {
            n: value
            for (n,), group in valid.group_by("n", maintain_order=True)
            # A sweep that the client cut short has not shown what it comes to.
            if statistic not in measures.OF_SWEEP or measures.hardest(group) == top
            if (value := measures.STATISTICS[statistic](group)) is not None
        }
    )
    found.hidden = not found and bool(len(frame)) and len(valid) < len(frame)
    if statistic == PEAK and top:
        found.update({n: AtLeast(v) for n, v in found.items() if v >= ALL_ANSWERED * top})
    if statistic in ROUNDED:
        found.update({n: Rounded(value) for n, value in found.items()})
    if statistic in OUTCOMES:
        found.update({n: Outcome(value) for n, value in found.items()})
    return found


def _divided(above: float, below: float) -> float:
    more = isinstance(above, AtLeast) or isinstance(below, AtMost)
    less = isinstance(above, AtMost) or isinstance(below, AtLeast)
    kinds = {(True, True): Unbounded, (True, False): AtLeast, (False, True): AtMost}
    return kinds.get((more, less), float)(above / below)


@cache
def points(dataset: str, experiment: str) -> pl.DataFrame | None:
    """Return the points of an experiment; None if the dataset has none."""
    return _table(dataset, experiment, "points")


@cache
def trials(dataset: str, experiment: str) -> pl.DataFrame | None:
    """Return the trials of an experiment; None if the dataset has none."""
    return _table(dataset, experiment, "trials")


def clear_caches() -> None:
    """Read tables anew from now on: what was measured has changed."""
    points.cache_clear()
    trials.cache_clear()


@contextmanager
def instead(given: dict[tuple[str, str, str], pl.DataFrame]) -> Iterator[None]:
    """Decide on these tables, by (dataset, experiment, table), before they are written anywhere.

    Meanwhile no other table of their datasets is known.
    """
    clear_caches()
    _GIVEN.update(given)
    try:
        yield
    finally:
        _GIVEN.clear()
        clear_caches()


_GIVEN: dict[tuple[str, str, str], pl.DataFrame] = {}


@contextmanager
def by_medians() -> Iterator[None]:
    """Decide by medians alone, whatever the number of trials and the spread between them."""
    token = _BY_MEDIANS.set(True)
    try:
        yield
    finally:
        _BY_MEDIANS.reset(token)


_BY_MEDIANS = ContextVar("by_medians", default=False)


def _table(dataset: str, experiment: str, table: str) -> pl.DataFrame | None:
    if any(dataset == known for known, _, _ in _GIVEN):
        return _GIVEN.get((dataset, experiment, table))
    if experiment not in files.names("experiment"):
        return None
    try:
        return tables.read(dataset, experiment, table)
    except UserError:
        return None


def selected(
    dataset: str, experiment: str, selector: dict, free: set[str] = frozenset(), table=points
) -> pl.DataFrame | None:
    """Return the points of one variant: unnamed factors at their defaults; None if it has none."""
    experiment = selector.get("experiment", experiment)
    frame = table(dataset, experiment)
    if frame is None:
        return None
    named = {key: level for key, level in selector.items() if key not in OWN}
    if not set(named) <= set(frame.columns):
        return None
    frame = views.default_variants(frame, experiment, frozenset(named) | free)
    for name, level in named.items():
        frame = frame.filter(pl.col(name) == level)
    return frame if len(frame) else None


def measured_levels(dataset: str, experiment: str, rule: dict) -> list:
    """Return the levels of the rule's column `over` that a dataset has, without instruments."""
    frame = selected(dataset, experiment, rule.get("where", {}), free={rule["over"]})
    if frame is None or rule["over"] not in frame.columns:
        return []
    return sorted(_compared_servers(frame, rule["over"])[rule["over"]].drop_nulls().unique())


def _compared_servers(frame: pl.DataFrame, column: str) -> pl.DataFrame:
    """Return the rows of servers that are compared, where a rule goes over servers."""
    return views.subjects(frame) if column == "server" else frame


def selector_phrase(selector: dict) -> str:
    """Return a selector in words: the server's title, then what else is chosen."""
    server = selector.get("server")
    known = server in files.names("server")
    title = files.server(server).title if known else server
    base = selector.get("relative_to", {})
    own = ("server", "statistic", "experiment", "relative_to")
    chosen = []
    for name, level in selector.items():
        word = _level_phrase(name, level)
        to = f" to {_level_phrase(name, base[name])}" if name in base else ""
        # What the title says already, as "Yaws, poll" does, is not said again.
        if name not in own and not (known and title.endswith(f", {word}")):
            chosen.append(word + to)
    return ", ".join(filter(None, [title, *chosen]))


def _level_phrase(name: str, level) -> str:
    """Return "backlog 128", "epoll", "all CPUs", "900 idle connections"."""
    if name == RATE:
        return f"at {phrases.number(level)} req/s"
    if name == "schedulers":
        return phrases.CPUS[level]
    if name == "idle_connections":
        return f"{phrases.number(level)} idle connections"
    if name in ("readiness", "configuration", "layer", "environment"):
        return str(level)
    return f"{name.replace('_', ' ')} {level}"


def sequentially(dataset: str) -> bool:
    """Return whether claims are judged at several looks: after adaptive rounds."""
    return dataset in files.names("dataset") and files.dataset(dataset).adaptive


def _tested(
    dataset: str, sides: list[Values], low: float, high: float, paired: bool = True
) -> dict:
    """Return the part that holds a / b, or a alone, against the claimed range."""
    if _BY_MEDIANS.get():
        return judging.by_medians(sides, low, high, paired)
    levels = sequential.LEVELS if sequentially(dataset) else None
    return judging.tested(sides, low, high, paired, levels)


def compared(dataset: str, experiment: str, rule: dict) -> tuple[dict, list[Values], list]:
    """Return the interval of a / b, or of a alone; the values; and what they are of."""
    sides, same, of = _sides(dataset, experiment, rule)
    if len(sides) == 1:
        return opened(stats.interval(list(sides[0].values())), sides[0], Values()), sides, of
    return quotient(*sides, paired=same), sides, of


def _sides(dataset: str, experiment: str, rule: dict) -> tuple[list[Values], bool, list]:
    """Return the values of a, and of b if there is one; whether by block; and what they are of."""
    named = [side for side in ("a", "b") if side in rule]
    found = [values(dataset, experiment, rule, rule[side]) for side in named]
    same = len({rule[side].get("experiment", experiment) for side in named}) == 1
    return found, same, [(experiment, rule, rule[side]) for side in named]


def _threshold(dataset: str, experiment: str, rule: dict):
    for chosen in _each(dataset, experiment, rule):
        sides, same, of = _sides(dataset, experiment, chosen)
        claimed = claimed_range(rule["threshold"], rule["direction"])
        yield _tested(dataset, sides, *claimed, same) | {"compared": of}


def _each(dataset: str, experiment: str, rule: dict) -> list[dict]:
    """Return the rule once for every value of its `each` column that both sides have."""
    if "each" not in rule:
        return [rule]
    sides = [side for side in ("a", "b") if side in rule]
    common: set | None = None
    for side in sides:
        frame = selected(dataset, experiment, rule[side])
        if frame is None or rule["each"] not in frame.columns:
            return [rule]
        found = set(_compared_servers(frame, rule["each"])[rule["each"]])
        common = found if common is None else common & found
    return [
        rule | {side: rule[side] | {rule["each"]: level} for side in sides}
        for level in sorted(common or set())
    ]


def _within(dataset: str, experiment: str, rule: dict):
    sides, same, of = _sides(dataset, experiment, rule)
    part = _tested(dataset, sides, rule["low"], rule["high"], same)
    direction = None
    if "b" in rule and (rule["low"] >= 1 or rule["high"] <= 1):
        above = claimed_range(1, "above" if rule["low"] >= 1 else "below")
        found = _tested(dataset, sides, *above, same)
        # Of a direction alone no condition is told.
        plain = {SATURATION: OPEN, CLIENT: NOT_RUN}
        direction = plain.get(found["lacks"], found["verdict"])
    yield part | {"compared": of, "direction": direction}


def _level(rule: dict, level) -> dict:
    chosen = level if isinstance(level, dict) else {rule["over"]: level}
    return rule.get("where", {}) | chosen


def _pair(dataset: str, experiment: str, rule: dict, above: dict, below: dict, side: str) -> dict:
    sides = [values(dataset, experiment, rule, each) for each in (above, below)]
    part = _tested(dataset, sides, *claimed_range(1, side))
    return part | {"compared": [(experiment, rule, each) for each in (above, below)]}


def _order(dataset: str, experiment: str, rule: dict):
    levels = [_level(rule, level) for level in rule["ascending"]]
    for lower, higher in itertools.pairwise(levels):
        yield _pair(dataset, experiment, rule, higher, lower, "above")


def _best(dataset: str, experiment: str, rule: dict):
    best = _level(rule, rule["level"])
    levels = rule.get("levels")
    if not levels:
        levels = measured_levels(dataset, experiment, rule)
        # What else stands for the same server is no rival of it.
        if rule["over"] == "server":
            own = published.releases_of(best["server"])
            levels = [level for level in levels if level not in own]
    mine = values(dataset, experiment, rule, best)
    for level in levels:
        other = _level(rule, level)
        if other == best:
            continue
        theirs = values(dataset, experiment, rule, other)
        if rule["direction"] == "highest" and theirs and _never(mine):
            # What was never counted is not more than anything.
            verdict = NOT if len(mine) >= MINIMUM_TRIALS else OPEN
            of = [(experiment, rule, best)]
            yield judgement(stats.interval(list(mine.values())), verdict, compared=of)
            continue
        side = "above" if rule["direction"] == "highest" else "below"
        yield _pair(dataset, experiment, rule, best, other, side)


def _never(found: Values) -> bool:
    return bool(found) and not any(found.values())


def _spread(dataset: str, experiment: str, rule: dict):
    selectors = [_level(rule, level) for level in rule["levels"]]
    found = [values(dataset, experiment, rule, each) for each in selectors]
    if not all(found):
        yield explained(not_run(), *found)
        return
    blocks = sorted(set.intersection(*(set(values) for values in found)))
    above = Values({n: max(values[n] for values in found) for n in blocks})
    below = Values({n: min(values[n] for values in found) for n in blocks})
    part = _tested(dataset, [above, below], *claimed_range(rule["threshold"], rule["direction"]))
    of = [(experiment, rule, each) for each in selectors]
    yield part | {"compared": of}


def _rank(dataset: str, experiment: str, rule: dict):
    """Judge the interval of Spearman's correlation, taken in each block over the levels."""
    sides = [
        [values(dataset, experiment, rule, rule[side] | {rule["over"]: level}) for level in levels]
        for levels in [measured_levels(dataset, experiment, rule | {"where": rule["a"]})]
        for side in ("a", "b")
    ]
    both = [(a, b) for a, b in zip(*sides, strict=True) if a and b]
    if len(both) < 3:
        yield not_run()
        return
    blocks = set.intersection(*(a.keys() & b.keys() for a, b in both))
    found = Values()
    for n in sorted(blocks):
        of = [a[n] for a, _ in both], [b[n] for _, b in both]
        # Ranks need at least two values that differ.
        if all(len(set(side)) > 1 for side in of):
            found[n] = float(spearmanr(*of).statistic)
    none = judgement(stats.interval([]) | {"trials": len(blocks)}, OPEN)
    claimed = claimed_range(rule["threshold"], rule["direction"])
    part = _tested(dataset, [found], *claimed) if found else none
    yield part | {"compared": [(experiment, rule, rule[side]) for side in ("a", "b")]}


def _all(dataset: str, experiment: str, rule: dict):
    for part in rule["rules"]:
        yield decide(dataset, experiment, part)


_PARTS: dict[str, Callable] = {
    "ratio": _threshold,
    "level": _threshold,
    "within": _within,
    "order": _order,
    "best": _best,
    "spread": _spread,
    "rank": _rank,
    "all": _all,
}
