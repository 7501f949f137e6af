"""Verdicts on the sources' claims, computed from a dataset by the rules of claims.toml.

`ledger(dataset)` returns one row a claim. A statistic is first taken of each trial, by block (the
trial's number); ratios are paired within a block. The header of `data/published/claims.toml` says
how each kind of rule is decided.
"""

import itertools
from collections.abc import Callable
from functools import cache

import polars as pl
from scipy.stats import spearmanr

from deathmatch import config, httperf, published, stats, tables, views, words
from deathmatch.errors import UserError
from deathmatch.views import ALL_ANSWERED, RATE, REPLY

RAW_HEAD_BYTES = 32  # Day 2011: key 16, ttl 8, hide 8, beside the body
REPLICATED, NOT, OPEN, NOT_RUN = "replicated", "not replicated", "inconclusive", "not run"
VERDICTS = (REPLICATED, NOT, OPEN, NOT_RUN)
MINIMUM_TRIALS = published.minimum_trials()

LEDGER = {
    "claim": pl.String,
    "source": pl.String,
    "place": pl.String,
    "experiment": pl.String,
    "says": pl.String,
    "rule": pl.String,
    "statistics": pl.List(pl.String),
    "verdict": pl.String,
    "effect": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "trials": pl.Int64,
    "published": pl.Float64,
    "why": pl.String,
    "differences": pl.List(pl.String),
}

INFINITE = float("inf")


class AtLeast(float):
    """The highest reply rate of a trial that answered all that was offered: it may do more."""


class Rounded(float):
    """A time in us that httperf prints in tenths of a millisecond: half of one either way."""


_HALF_STEP_US = 50
_ROUNDED = {"response_time_mean_us"}

Values = dict[int, float]  # by block
_OWN = ("statistic", "experiment", "relative_to", RATE)


def ledger(dataset: str) -> pl.DataFrame:
    """Return the verdict on every claim, in the order of claims.toml, with the columns of LEDGER.

    `effect` with its interval is what the rule's deciding part compared: a / b, or a alone. `why`
    says why a claim was not run; `differences` names those that could explain a result other than
    the source's.
    """
    rows = []
    for claim in published.claims():
        found = decide(dataset, claim["experiment"], claim["rule"])
        rows.append(
            {
                "claim": claim["id"],
                "source": claim["source"],
                "place": claim["place"],
                "experiment": claim["experiment"],
                "says": claim["claim"],
                "rule": claim["rule"]["text"],
                "statistics": sorted(published.statistics_of(claim["rule"])),
                "verdict": found["verdict"],
                "effect": found["median"],
                "low": found["low"],
                "high": found["high"],
                "trials": found["trials"],
                "published": published.effect(claim),
                "why": why(dataset, claim) if found["verdict"] == NOT_RUN else "",
                "differences": [d["id"] for d in published.differences() if affects(d, claim)],
            }
        )
    return pl.DataFrame(rows, schema=LEDGER)


def why(dataset: str, claim: dict) -> str:
    """Return why a claim could not be decided at all in a dataset, as the end of a sentence."""
    experiments, servers, columns = set(), set(), set()
    for selector in [{}, *published.selectors(claim["rule"])]:
        experiments.add(selector.get("experiment", claim["experiment"]))
        servers.add(selector.get("server", claim["rule"].get("level")))
        columns |= selector.keys()
    for name in sorted(str(server) for server in servers if server):
        if name in config.names("server") and "not_run" in config.load("server", name):
            return f"{config.load('server', name)['title']} could not be run here"
    for column, about in published.planned().items():
        if column in columns:
            return f"no experiment has this column yet: {about}"
    unknown = sorted(published.statistics_of(claim["rule"]) - STATISTICS.keys())
    if unknown:
        return f"no client records this yet: {unknown[0].replace('_', ' ')}"
    for experiment in sorted(experiments):
        if _points(dataset, experiment) is None:
            return f"the dataset has no experiment {experiment}"
    return "the dataset lacks one of its variants or rates"


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
        found = _compared(dataset, tells["experiment"], rule) if tells else stats.interval([])
        row = {"difference": one["id"], "tells": tells["text"] if tells else ""}
        rows.append(row | {key: one[key] for key in ("name", "then", "now")} | found)
    text = dict.fromkeys(("difference", "name", "then", "now", "tells"), pl.String)
    return pl.DataFrame(rows, schema=text | stats.INTERVAL)


def effect_text(row: dict) -> str:
    """Return a ledger row's effect as "2.31 [2.20, 2.44], n = 3"; empty without one.

    An end of the interval that the load left open is said as "at least" or "at most".
    """
    if row["effect"] is None:
        return ""
    low, high = row["low"], row["high"]
    if low is None:
        said = _short(row["effect"])
    elif (low, high) == (-INFINITE, INFINITE):
        said = "no limit reached"
    elif high == INFINITE:
        said = f"at least {_short(low)}"
    elif low == -INFINITE:
        said = f"at most {_short(high)}"
    else:
        said = f"{_short(row['effect'])} [{_short(low)}, {_short(high)}]"
    return f"{said}, n = {row['trials']}"


def _short(value: float) -> str:
    return words.number(value) if abs(value) >= 1000 else f"{value:.3g}"


def decide(dataset: str, experiment: str, rule: dict) -> dict:
    """Return the verdict on one rule, with the interval of the part that decides it."""
    parts = list(_PARTS[rule["kind"]](dataset, experiment, rule))
    worst = [NOT, NOT_RUN, OPEN, REPLICATED]
    return min(parts, key=lambda part: worst.index(part["verdict"])) if parts else _not_run()


def _not_run() -> dict:
    return stats.interval([]) | {"verdict": NOT_RUN}


def _judged(found: dict, low: float, high: float) -> dict:
    """Compare an interval with the claimed range; too few trials decide nothing."""
    if not found["trials"]:
        verdict = NOT_RUN
    elif found["trials"] < MINIMUM_TRIALS or found["low"] is None:
        verdict = OPEN
    elif low < found["low"] and (found["high"] < high or high == INFINITE):
        verdict = REPLICATED
    elif found["high"] < low or found["low"] > high:
        verdict = NOT
    else:
        verdict = OPEN
    return found | {"verdict": verdict}


def _side(found: dict, threshold: float, direction: str) -> dict:
    if direction == "above":
        return _judged(found, threshold, INFINITE)
    return _judged(found, -INFINITE, threshold)


def _open(found: dict, above: Values, below: Values) -> dict:
    """Return an interval without the ends that peaks which are only known "at least" leave open."""
    if found["low"] is None:
        return found
    high = {"high": INFINITE} if _any_at_least(*above.values()) else {}
    low = {"low": -INFINITE} if _any_at_least(*below.values()) else {}
    return found | high | low


def _blurred(found: dict, pairs: list[tuple[float, float]]) -> dict:
    """Return the interval of ratios, wide enough for what rounding may have hidden."""
    if found["low"] is None or not any(isinstance(a, Rounded) for a, _ in pairs):
        return found
    half = _HALF_STEP_US
    least = stats.interval([(a - half) / (b + half) for a, b in pairs])
    if min(b for _, b in pairs) <= half:
        return found | {"low": least["low"], "high": INFINITE}
    most = stats.interval([(a + half) / (b - half) for a, b in pairs])
    return found | {"low": least["low"], "high": most["high"]}


def _any_at_least(*values: float) -> bool:
    return any(isinstance(value, AtLeast) for value in values)


def _quotient(above: Values, below: Values, paired: bool = True) -> dict:
    if not above or not below:
        return stats.interval([])
    if paired and above.keys() & below.keys():
        blocks = sorted(above.keys() & below.keys())
        pairs = [(above[n], below[n]) for n in blocks if below[n]]
        found = stats.interval([a / b for a, b in pairs])
    else:
        pairs = [(a, b) for a in above.values() for b in below.values() if b]
        found = stats.interval([a / b for a, b in pairs]) | {"trials": min(len(above), len(below))}
    return _open(_blurred(found, pairs), above, below)


def _compared(dataset: str, experiment: str, rule: dict) -> dict:
    a = values(dataset, experiment, rule, rule["a"])
    if "b" not in rule:
        return _open(stats.interval(list(a.values())), a, {})
    b = values(dataset, experiment, rule, rule["b"])
    same = rule["a"].get("experiment", experiment) == rule["b"].get("experiment", experiment)
    return _quotient(a, b, paired=same)


def _threshold(dataset: str, experiment: str, rule: dict):
    for chosen in _each(dataset, experiment, rule):
        found = _compared(dataset, experiment, chosen)
        yield _side(found, rule["threshold"], rule["direction"])


def _each(dataset: str, experiment: str, rule: dict) -> list[dict]:
    """Return the rule once for every value of its `each` column that both sides have."""
    if "each" not in rule:
        return [rule]
    sides = [side for side in ("a", "b") if side in rule]
    common: set | None = None
    for side in sides:
        frame = _selected(dataset, experiment, rule[side])
        if frame is None or rule["each"] not in frame.columns:
            return [rule]
        found = set(frame[rule["each"]])
        common = found if common is None else common & found
    return [
        rule | {side: rule[side] | {rule["each"]: level} for side in sides}
        for level in sorted(common or set())
    ]


def _within(dataset: str, experiment: str, rule: dict):
    yield _judged(_compared(dataset, experiment, rule), rule["low"], rule["high"])


def _level_values(dataset: str, experiment: str, rule: dict, levels: list) -> list[Values]:
    where = rule.get("where", {})
    return [
        values(
            dataset,
            experiment,
            rule,
            where | (level if isinstance(level, dict) else {rule["over"]: level}),
        )
        for level in levels
    ]


def _order(dataset: str, experiment: str, rule: dict):
    found = _level_values(dataset, experiment, rule, rule["ascending"])
    for lower, higher in itertools.pairwise(found):
        yield _side(_quotient(higher, lower), 1, "above")


def _best(dataset: str, experiment: str, rule: dict):
    levels = rule.get("levels") or _measured_levels(dataset, experiment, rule)
    [best] = _level_values(dataset, experiment, rule, [rule["level"]])
    others = [level for level in levels if level != rule["level"]]
    for other in _level_values(dataset, experiment, rule, others):
        if rule["direction"] == "highest" and other and _never(best):
            # What was never counted is not more than anything.
            yield stats.interval(list(best.values())) | {
                "verdict": NOT if len(best) >= MINIMUM_TRIALS else OPEN
            }
            continue
        side = "above" if rule["direction"] == "highest" else "below"
        yield _side(_quotient(best, other), 1, side)


def _never(found: Values) -> bool:
    return bool(found) and not any(found.values())


def _measured_levels(dataset: str, experiment: str, rule: dict) -> list:
    frame = _selected(dataset, experiment, rule.get("where", {}), free={rule["over"]})
    if frame is None or rule["over"] not in frame.columns:
        return []
    return sorted(frame[rule["over"]].drop_nulls().unique())


def _spread(dataset: str, experiment: str, rule: dict):
    found = _level_values(dataset, experiment, rule, rule["levels"])
    if not all(found):
        yield _not_run()
        return
    blocks = sorted(set.intersection(*(set(values) for values in found)))
    above = {n: max(values[n] for values in found) for n in blocks}
    below = {n: min(values[n] for values in found) for n in blocks}
    yield _side(_quotient(above, below), rule["threshold"], rule["direction"])


def _rank(dataset: str, experiment: str, rule: dict):
    levels = _measured_levels(dataset, experiment, rule | {"where": rule["a"]})
    pairs = []
    for level in levels:
        a, b = (
            values(dataset, experiment, rule, rule[side] | {rule["over"]: level})
            for side in ("a", "b")
        )
        if a and b:
            pairs.append((stats.interval(list(a.values())), stats.interval(list(b.values()))))
    if len(pairs) < 3:
        yield _not_run()
        return
    sides = [[pair[side]["median"] for pair in pairs] for side in (0, 1)]
    # Ranks need at least two values that differ.
    if any(len(set(side)) == 1 for side in sides):
        yield stats.interval([]) | {"trials": len(pairs), "verdict": OPEN}
        return
    found = spearmanr(*sides)
    # A rank correlation of medians has no interval over trials: it is compared as it is.
    alone = {"median": float(found.statistic), "low": None, "high": None, "trials": len(pairs)}
    reached = alone["median"] > rule["threshold"]
    verdict = REPLICATED if reached == (rule["direction"] == "above") else NOT
    yield alone | {"verdict": verdict}


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


def values(dataset: str, experiment: str, rule: dict, selector: dict) -> Values:
    """Return a selector's statistic for each block; empty if nothing was measured so."""
    experiment = selector.get("experiment", experiment)
    statistic = selector.get("statistic", rule.get("statistic"))
    frame = _selected(dataset, experiment, selector)
    if frame is None or statistic not in STATISTICS:
        return {}
    top = _hardest(frame) if RATE in frame.columns else None
    if not statistic.startswith("client_") and "client_limited" in frame.columns:
        frame = frame.filter(~pl.col("client_limited"))
    if RATE in selector:
        frame = frame.filter(pl.col(RATE) == selector[RATE])
    found = {
        n: value
        for (n,), group in frame.group_by("n", maintain_order=True)
        # A sweep that the client cut short has not shown what it comes to.
        if statistic not in OF_SWEEP or _hardest(group) == top
        if (value := STATISTICS[statistic](group)) is not None
    }
    if statistic == PEAK and top:
        found = {n: AtLeast(v) if v >= ALL_ANSWERED * top else v for n, v in found.items()}
    if statistic in _ROUNDED:
        found = {n: Rounded(value) for n, value in found.items()}
    if "relative_to" not in selector:
        return found
    plain = {key: level for key, level in selector.items() if key != "relative_to"}
    base = values(dataset, experiment, rule, plain | selector["relative_to"])
    # A quotient of two peaks of which one may be higher tells nothing.
    return {
        n: found[n] / base[n]
        for n in sorted(found.keys() & base.keys())
        if base[n] and not _any_at_least(found[n], base[n])
    }


@cache
def _points(dataset: str, experiment: str) -> pl.DataFrame | None:
    if experiment not in config.names("experiment"):
        return None
    try:
        return tables.read(dataset, experiment, "points")
    except UserError:
        return None


def _selected(
    dataset: str, experiment: str, selector: dict, free: set[str] = frozenset()
) -> pl.DataFrame | None:
    """Return the points of one variant: unnamed factors at their defaults; None if it has none."""
    experiment = selector.get("experiment", experiment)
    frame = _points(dataset, experiment)
    if frame is None:
        return None
    named = {key: level for key, level in selector.items() if key not in _OWN}
    if not set(named) <= set(frame.columns):
        return None
    frame = views.usual(frame, experiment, frozenset(named) | free)
    for name, level in named.items():
        frame = frame.filter(pl.col(name) == level)
    return frame if len(frame) else None


def _hardest(points: pl.DataFrame) -> int:
    """Return the offered rate that asks most of a server: 0, the closed loop, else the highest."""
    rates = points[RATE]
    return 0 if (rates == 0).any() else rates.max()


def _due(points: pl.DataFrame) -> float:
    return (points[RATE] * points["duration_us"]).sum() / 1e6


def _per_reply(points: pl.DataFrame, column: str, scale: float = 1) -> float | None:
    known = points.drop_nulls([column, "replies"])
    return scale * known[column].sum() / known["replies"].sum() if known["replies"].sum() else None


def _error_ratio(points: pl.DataFrame) -> float | None:
    due = _due(points)
    return max(0.0, 1 - points["replies"].fill_null(0).sum() / due) if due else None


def _first_error_rate(points: pl.DataFrame) -> float | None:
    ordered = points.sort(RATE)
    failing = [p[RATE][0] for p in ordered.iter_slices(1) if (_error_ratio(p) or 0) > 0.01]
    return float(failing[0]) if failing else float(ordered[RATE].max())


def _mean(points: pl.DataFrame, column: str) -> float | None:
    return points[column].drop_nulls().mean() if column in points.columns else None


def _errors(points: pl.DataFrame, *columns: str) -> int:
    return sum(points[column].fill_null(0).sum() for column in columns)


def _timeout_share(points: pl.DataFrame) -> float | None:
    total = _errors(points, "errors_total")
    timeouts = _errors(points, "errors_client_timeout", "errors_socket_timeout")
    return timeouts / total if total else None


def _client_error_ratio(points: pl.DataFrame) -> float | None:
    due = _due(points)
    return _errors(points, *httperf.OWN_ERRORS) / due if due else None


def _bytes_per_message(points: pl.DataFrame) -> float | None:
    ordered = points.sort("messages")
    grown = ordered["rss_bytes"][-1] - ordered["rss_bytes"][0]
    return grown / ordered["messages"][-1] if ordered["messages"][-1] else None


def _memory_overhead(points: pl.DataFrame) -> float | None:
    each = _bytes_per_message(points)
    return None if each is None else each / (RAW_HEAD_BYTES + points["body_bytes"][0]) - 1


def _latency(points: pl.DataFrame, column: str) -> float | None:
    """Return a latency's mean over points; one that lies among lost messages is the drain at least.

    So it is compared with no less than it was, and a claim of long latencies is decided by it.
    """
    if f"message_{column}" not in points.columns:
        return None
    drain_us = config.load("experiment", "c10k")["load"]["drain_s"] * 1e6
    answered = points.filter(pl.col("messages_due") > 0)
    return answered[f"message_{column}"].cast(pl.Float64).fill_null(drain_us).mean()


def _latency_spread(points: pl.DataFrame) -> float | None:
    high, middle = (_latency(points, f"latency_{q}_us") for q in ("p95", "p50"))
    return high / middle if high is not None and middle else None


PEAK = "peak_reply_rate_rps"
OF_SWEEP = {PEAK, "first_error_rate_rps"}

STATISTICS: dict[str, Callable[[pl.DataFrame], float | None]] = {
    "bytes_per_message": _bytes_per_message,
    "client_died": lambda p: float((~p["client_state"].str.starts_with("exit 0")).any()),
    "client_error_ratio": _client_error_ratio,
    "concurrent_connections": lambda p: _mean(p, "concurrent_connections"),
    "connection_timeouts": lambda p: _mean(p, "connection_timeouts"),
    "context_switches_per_reply": lambda p: _per_reply(p, "context_switches"),
    "cpu_us_per_reply": lambda p: _per_reply(p, "server_cpu_ns", 1e-3),
    "died": lambda p: float(p.select(views.DIED.any()).item()),
    "error_ratio": _error_ratio,
    "first_error_rate_rps": _first_error_rate,
    "handshake_time_mean_us": lambda p: _mean(p, "handshake_time_mean_us"),
    "interrupts_per_reply": lambda p: _per_reply(p, "interrupts"),
    "load_average": lambda p: p["load_average_max"].max(),
    "memory_overhead": _memory_overhead,
    "message_latency_growth": lambda p: _mean(p, "message_latency_growth"),
    "message_latency_mean_us": lambda p: _mean(p, "message_latency_mean_us"),
    "message_latency_p50_us": lambda p: _latency(p, "latency_p50_us"),
    "message_latency_p95_us": lambda p: _latency(p, "latency_p95_us"),
    "message_latency_spread": _latency_spread,
    PEAK: lambda p: p[REPLY].max(),
    "reply_rate_rps": lambda p: _mean(p, REPLY),
    "reply_ratio": lambda p: 1 - error if (error := _error_ratio(p)) is not None else None,
    "reply_rate_stddev_rps": lambda p: _mean(p, "reply_rate_stddev_rps"),
    "response_time_mean_us": lambda p: _mean(p, "response_time_avg_us"),
    "server_rss_bytes": lambda p: p["server_rss_bytes_max"].max(),
    "timeout_share": _timeout_share,
}
"""Statistics of one trial's points, by the names that claims.toml defines."""
