"""Every system in one table.

A system is a folder of `servers/`. Its row says which version ran, in which variants, whether it
answered as each experiment asks, one figure for each experiment, or why it did not run.
"""

from collections.abc import Callable
from functools import cache

import polars as pl

from deathmatch.analysis import phrases, stats, views
from deathmatch.analysis.reply_rates import RATE
from deathmatch.data import laws, limits
from deathmatch.plan import files
from deathmatch.plan.server import Server
from deathmatch.plan.trial import CONFIGURATION
from deathmatch.quantities.definitions import BYTES_PER_MESSAGE, REPLY_RATE_OVERLOAD

SCHEMA = {
    "server": pl.String,
    "system": pl.String,
    "language": pl.String,
    "source": pl.String,
    "version": pl.String,
    "variants": pl.String,
    "conformance": pl.String,
    "figures": pl.String,
}
LATENCY = "message_latency_p50_us"


def systems(dataset: str) -> pl.DataFrame:
    """Return one row for each folder of `servers/`, by title, with the columns of SCHEMA.

    `version` is null for a system that the dataset has no trial of; `figures` then gives the
    reason. Each figure is the median of the best variant, with the number of trials behind it.
    """
    read = cache(lambda experiment: views.Experiment(dataset, experiment))
    rows = [_row(server, read) for server in files.servers()]
    frame = pl.DataFrame(rows, schema=SCHEMA)
    return frame.sort(pl.col("system").str.to_lowercase())


def _row(server: Server, read) -> dict:
    known = [read(experiment) for experiment in server.experiments]
    trials = [seen.trials.filter(pl.col("server") == server.name) for seen in known]
    versions = [frame["version"].drop_nulls() for frame in trials]
    version = next((column[0] for column in versions if len(column)), None)
    if not any(map(len, trials)):
        figures = "not in this dataset" if server.runs else f"not run: {server.not_run}"
    else:
        shown = [(seen.name, figure(seen, server.name)) for seen in known]
        figures = "; ".join(f"{experiment} {text}" for experiment, text in shown if text)
    schema = {"outcome": pl.String, "reason": pl.String, "deviations": pl.List(pl.String)}
    ended = pl.concat(
        [pl.DataFrame(schema=schema), *(frame.select(list(schema)) for frame in trials)]
    )
    return {
        "server": server.name,
        "system": server.title,
        "language": server.language,
        "source": server.source,
        "version": version,
        "variants": variants(server),
        "conformance": conformance(ended),
        "figures": figures,
    }


def variants(server: Server) -> str:
    """Return how the server can be run: its configurations, then the levels of its factors."""
    levels = [[server.called(name) for name in server.configurations]]
    for factor, able in server.factors.items():
        if factor == "backlog":
            levels.append([f"backlog {level}" for level in able])
        elif factor == "schedulers":
            words = ["one more than all" if level == "all-and-one" else level for level in able]
            levels.append([" or ".join(words) + (" CPUs" if "all" in able else " CPU")])
        elif able:
            levels.append(list(map(str, able)))
    return "; ".join(", ".join(words) for words in levels if words)


def conformance(trials: pl.DataFrame) -> str | None:
    """Return in how many trials the checks passed, else what was wrong first; null without trials.

    A trial is timed only if every check of its experiment passes, but for those that the server is
    known to fail (`deviations` of its server.toml): one that was measured has passed the others.
    """
    if not len(trials):
        return None
    failed = trials.filter(~pl.col("outcome").str.starts_with("measured"))
    if not len(failed):
        known = sorted(set(trials["deviations"].explode().drop_nulls()))
        but = f", but for: {'; '.join(known)}" if known else ""
        return f"passed in {len(trials)} of {len(trials)} trials{but}"
    outcome, reason = failed.select("outcome", "reason").row(0)
    first = reason.splitlines()[0] if reason else ""
    return f"{outcome} in {len(failed)} of {len(trials)} trials: {first}"


def figure(experiment: views.Experiment, server: str) -> str:
    """Return the server's best figure in an experiment in words; empty if it has no point.

    Requests: the reply rate at the highest rate offered, "at least" that where the client was the
    limit there; of the overhead experiment, in its closed loop. Messages stored: the fewest bytes
    of resident memory for each, of the experiment's usual size. WebSocket: the lowest median
    latency. All are medians of the rounds in which every variant of the experiment ran.
    """
    points = experiment.ranked(experiment.lawful_points).filter(pl.col("server") == server)
    if not len(points):
        return ""
    if "messages" in points.columns:
        points = views.default_variants(points, experiment.name, frozenset({CONFIGURATION}))
        return _best(points, BYTES_PER_MESSAGE.of_trial, min, "bytes/message")
    if LATENCY in points.columns:
        return _best(laws.steady(points), lambda p: p[LATENCY].min(), min, "µs")
    if (points[RATE] == 0).any():
        points = points.filter(pl.col(RATE) == 0)
    valid = points.filter(~limits.by_harness(points))
    if not len(valid):
        return "client-limited at every rate"
    cut = valid[RATE].max() != points[RATE].max()
    # What a client at its limit got out of a server, the server can answer.
    shown = points if cut else valid
    return ("at least " if cut else "") + _best(shown, REPLY_RATE_OVERLOAD.of_trial, max, "req/s")


def _best(points: pl.DataFrame, statistic: Callable, choose: Callable, unit: str) -> str:
    """Return "12 345 req/s (tuned, n = 3)": the best variant's median of a statistic of trials."""
    values: dict[str, list[float]] = {}
    for (variant, _), trial in points.group_by("variant", "n", maintain_order=True):
        if (value := statistic(trial)) is not None:
            values.setdefault(variant, []).append(value)
    if not values:
        return ""
    by_variant = {variant: stats.interval(numbers) for variant, numbers in values.items()}
    best = choose(by_variant, key=lambda variant: by_variant[variant].estimate)
    title, label = points.filter(variant=best).select("title", "label").row(0)
    way = label.removeprefix(title).removeprefix(", ")
    n = f"n = {by_variant[best].trials}"
    return (
        f"{phrases.number(by_variant[best].estimate)} {unit} ({', '.join(filter(None, [way, n]))})"
    )
