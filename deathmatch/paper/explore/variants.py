"""The explorer's rows of measurements: of each variant, offered rate and trial.

In: one experiment of one dataset (`deathmatch.analysis.views`). Out: lists of dicts with numbers
and text alone. A measured quantity is [median, low, high, trials], of the interval that figures
have (`deathmatch.analysis.stats`), with a fifth element, 1, where the load did not reach the
server's limit: then it is at least that. It is of the rounds in which every variant of the
experiment ran. None where nothing was measured.
"""

from dataclasses import dataclass
from math import isfinite

import polars as pl

from deathmatch.analysis import by_trial, card, classes, searched, stats, systems, views
from deathmatch.analysis.reply_rates import RATE
from deathmatch.analysis.views import LABEL_FACTORS
from deathmatch.capacity_search import search
from deathmatch.data import limits
from deathmatch.paper.explore import quantities
from deathmatch.paper.explore.quantities import Shown
from deathmatch.plan import files
from deathmatch.quantities.definitions import CAPACITY
from deathmatch.quantities.quantity import WRONG

DIGITS = 5
_VARIANT = ["server", "variant"]
# A curve is drawn over a factor with so many levels.
LEVELS = 3

Roles = dict[tuple[str, str, str], set[str]]
"""By experiment, server and variant: "then", "now", or both."""


@dataclass(frozen=True)
class Rows:
    """One experiment of one dataset, as rows for the page."""

    variants: list[dict]
    rates: list[dict]
    trials: list[dict]


def rows(dataset: str, name: str, roles: Roles) -> Rows:
    """Return the rows of an experiment; none if the dataset has no trial of it."""
    spec = files.experiment(name)
    labelled = tuple(factor for factor in spec.factors if factor not in LABEL_FACTORS)
    seen = views.Experiment(dataset, name, labelled)
    if seen.trials.is_empty():
        return Rows([], [], [])
    over = axis(seen.trials, list(spec.factors))
    without = {factor: spec.factors[factor].default for factor in labelled if factor != over}
    series = _labels(views.label(seen.trials, without))
    ranked = seen.ranked(seen.points)
    parts = ranked.partition_by(_VARIANT, as_dict=True, maintain_order=True)
    plain = {
        tuple(row) for row in views.default_variants(seen.trials, name).select(_VARIANT).rows()
    }
    labels, alarms, classed = _labels(seen.trials), card.alarms(seen), _classes(seen)
    of_sweep = quantities.OF_SWEEPS.get(spec.client, ())
    cells = {
        one.name: _capacities(seen) if one.quantity is CAPACITY else _cells(ranked, one, _VARIANT)
        for one in of_sweep
    }
    of_it = {"experiment": name}
    rates = [of_it | row for row in _of_rates(ranked, spec.client)]
    shown_rows = Rows([], rates, _trials(seen))
    for key, trials in seen.trials.partition_by(
        _VARIANT, as_dict=True, maintain_order=True
    ).items():
        points = parts.get(key, ranked.clear())
        first = trials.row(0, named=True)
        base = of_it | dict(zip(_VARIANT, key))
        sweep = {name: known.get(key) for name, known in cells.items()}
        shown_rows.variants.append(
            base
            | {
                "label": labels[key],
                "series": series[key],
                "over": over if over and first[over] is not None else None,
                "level": first[over] if over else None,
                "plain": key in plain,
                "class": classed.get(key),
                "mechanism": _mechanism(key[0], first),
                "stands": " and ".join(sorted(roles.get((name, *key), ()), reverse=True)),
                "trials": len(trials),
                "wrong": alarms.get(key[0], "") if WRONG in points and points[WRONG].sum() else "",
                "conformance": systems.conformance(trials),
                "why": "" if next(iter(sweep.values()), None) else _why(trials, points),
            }
            | sweep
        )
    return shown_rows


def axis(trials: pl.DataFrame, factors: list[str]) -> str | None:
    """Return the factor of numbers with most levels, if it has enough for a curve."""
    counts = {
        name: trials[name].drop_nulls().n_unique()
        for name in factors
        if name not in LABEL_FACTORS and trials.schema[name].is_integer()
    }
    best = max(counts, key=counts.get, default=None)
    return best if best and counts[best] >= LEVELS else None


def measured(
    values: list[float | None], scale: float = 1.0, at_least: bool = False
) -> list[float | int] | None:
    """Return one value a trial as a measured quantity; `at_least`: it may be more."""
    known = [scale * value for value in values if value is not None and isfinite(value)]
    if not known:
        return None
    over_trials = stats.interval(known)
    ends = [_short(end) for end in (over_trials.estimate, over_trials.low, over_trials.high)]
    return [*ends, over_trials.trials, *([1] if at_least else [])]


def _classes(seen: views.Experiment) -> dict[tuple[str, str], int]:
    """Return the class of each server in its default variant, by server and variant."""
    if RATE not in seen.points.columns:
        return {}
    plain = views.default_variants(views.subjects(seen.ranked(seen.valid_points)), seen.name)
    return {(*key,): own for *key, own in classes.by_cost(plain, _VARIANT).iter_rows()}


def _cells(points: pl.DataFrame, shown: Shown, by: list[str]) -> dict[tuple, list | None]:
    """Return what was measured of a quantity by the levels of `by`: of points that count for it."""
    # In a closed loop as much is offered as is answered: nothing is due.
    due = shown in (quantities.ERRORS, quantities.WRONG)
    offered = points.filter(pl.col(RATE) > 0) if due else points
    valid = by_trial.counted(offered, shown.quantity.points)
    by_level: dict[tuple, list[float]] = {}
    for *levels, _, value in by_trial.values(valid, shown.quantity, by).iter_rows():
        by_level.setdefault((*levels,), []).append(value)
    return {levels: measured(values, shown.scale) for levels, values in by_level.items()}


def _capacities(seen: views.Experiment) -> dict[tuple, list | None]:
    """Return the capacity of each variant; a bound where only the client's limit was found."""
    known = {}
    for key, own in searched.ends(seen.probes).group_by(_VARIANT, maintain_order=True):
        found, limited = (own.filter(outcome=end) for end in (search.FOUND, search.CLIENT))
        bound = not len(found) and len(limited) > 0
        values = (limited if bound else found)[CAPACITY.name].to_list()
        known[key] = measured(values, at_least=bound)
    return known


def _why(trials: pl.DataFrame, points: pl.DataFrame) -> str:
    """Return why a variant has no number of its experiment's main quantity."""
    if points.is_empty() or points.select(limits.by_harness(points).any()).item():
        return views.why_not_measured(trials.row(0, named=True), points).replace("`", "")
    return ""


def _of_rates(points: pl.DataFrame, client: str | None) -> list[dict]:
    """Return a row for each variant and offered rate, in order."""
    columns = quantities.OF_RATES.get(client, ())
    if not columns or points.is_empty():
        return []
    by = [*_VARIANT, RATE]
    cells = {shown.name: _cells(points, shown, by) for shown in columns}
    rates = points.select(by).unique(maintain_order=True).sort(by, maintain_order=True)
    return [
        dict(zip(_VARIANT, levels)) | {"rate_rps": levels[-1]}
        | {name: known.get(levels) for name, known in cells.items()}
        for levels in rates.iter_rows()
    ]  # fmt: skip


def _labels(trials: pl.DataFrame) -> dict[tuple[str, str], str]:
    """Return each variant's label without its server's title; "" for the default variant."""
    firsts = trials.unique(_VARIANT, keep="first", maintain_order=True)
    named = firsts.select(*_VARIANT, "title", "label").to_dicts()
    return {
        (row["server"], row["variant"]): row["label"]
        .removeprefix(row["title"])
        .removeprefix(", ")
        .replace("_", " ")
        for row in named
    }


def _mechanism(server: str, trial: dict) -> str:
    """Return the readiness mechanism: the variant's, else the only one that the server has."""
    if trial.get("readiness"):
        return trial["readiness"]
    known = files.exists("server", server)
    levels = files.server(server).factors.get("readiness", ()) if known else ()
    return str(levels[0]) if len(levels) == 1 else ""


def _trials(seen: views.Experiment) -> list[dict]:
    """Return a row for each trial: how it ended, when, of which version, by which commit."""
    return [
        {
            "experiment": seen.name,
            "server": row["server"],
            "variant": row["variant"],
            "n": row["n"],
            "outcome": row["outcome"],
            "reason": (row["reason"] or "").strip().partition("\n")[0][:300],
            "started_at": f"{row['started_at']:%Y-%m-%dT%H:%M:%SZ}" if row["started_at"] else "",
            "wall_s": row["wall_us"] and round(row["wall_us"] / 1e6, 1),
            "version": row["version"] or "",
            "commit": row["commit"] or "",
        }
        for row in seen.trials.sort("server", "variant", "n").to_dicts()
    ]


def _short(value: float | None) -> float | int | None:
    if value is None:
        return None
    rounded = float(f"{value:.{DIGITS}g}")
    return int(rounded) if rounded.is_integer() else rounded
