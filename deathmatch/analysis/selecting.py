"""What a selector of claims.toml chooses of a dataset, and its statistic in each trial.

A selector names a server and levels of factors; those that it does not name are at their defaults.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import polars as pl

from deathmatch.analysis import phrases, trial_statistics, views
from deathmatch.analysis.judging import AtLeast, AtMost, Outcome, Rounded, Unbounded, Values
from deathmatch.analysis.reply_rates import ALL_ANSWERED, RATE
from deathmatch.analysis.trial_statistics import PEAK
from deathmatch.data import laws, tables
from deathmatch.errors import UserError
from deathmatch.plan import files

ROUNDED = {"response_time_mean_us"}
OUTCOMES = {"client_died", "died"}
# Keys of a selector that are no columns.
OWN = ("statistic", "experiment", "relative_to", RATE)


def values(dataset: str, experiment: str, rule: dict, selector: dict) -> Values:
    """Return a selector's statistic for each block; empty if nothing was measured so."""
    experiment = selector.get("experiment", experiment)
    statistic = selector.get("statistic", rule.get("statistic"))
    frame = selected(dataset, experiment, selector)
    if frame is None or statistic not in trial_statistics.STATISTICS:
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
    top = trial_statistics.hardest(frame) if RATE in frame.columns else None
    if RATE in selector:
        frame = frame.filter(pl.col(RATE) == selector[RATE])
    valid = frame
    if not statistic.startswith("client_") and "client_limited" in frame.columns:
        # Without a report only the server's end is known.
        told = statistic == "died" or pl.col("report").ne_missing("truncated")
        excused = (laws.STEADY,) if statistic in trial_statistics.OF_THE_COURSE else ()
        valid = laws.upheld(frame, excused).filter(~pl.col("client_limited"), told)
    found = Values(
        {
            n: value
            for (n,), group in valid.group_by("n", maintain_order=True)
            # A sweep that the client cut short has not shown what it comes to.
            if statistic not in trial_statistics.OF_SWEEP or trial_statistics.hardest(group) == top
            if (value := trial_statistics.STATISTICS[statistic](group)) is not None
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
    return sorted(compared_servers(frame, rule["over"])[rule["over"]].drop_nulls().unique())


def compared_servers(frame: pl.DataFrame, column: str) -> pl.DataFrame:
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
