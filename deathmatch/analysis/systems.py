"""Each system (a folder of `servers/`): the version that ran, its variants, its conformance."""

import polars as pl

from deathmatch.analysis import views
from deathmatch.plan import files
from deathmatch.plan.server import Server

SCHEMA = {"server": pl.String, "version": pl.String, "conformance": pl.String}
_ENDS = {"outcome": pl.String, "reason": pl.String, "deviations": pl.List(pl.String)}


def systems(dataset: str) -> pl.DataFrame:
    """Return one row for each folder of `servers/`, by name, with the columns of SCHEMA.

    `version` and `conformance` are null for a system that the dataset has no trial of.
    """
    kept = ["server", "version", *_ENDS]
    seen = [views.Experiment(dataset, name).trials for name in files.names("experiment")]
    of_server = pl.concat([trials.select(kept) for trials in seen]).partition_by(
        "server", as_dict=True, maintain_order=True
    )
    rows = []
    for name in files.names("server"):
        trials = of_server.get((name,), pl.DataFrame(schema={"version": pl.String} | _ENDS))
        version = next(iter(trials["version"].drop_nulls()), None)
        rows.append((name, version, conformance(trials)))
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def variants(server: Server) -> str:
    """Return the variants of a server: its configurations, then the levels of its factors."""
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
    """Return in how many trials the checks passed, else the first failure; null without trials.

    A trial is timed only if all checks of its experiment pass, except the known `deviations` of its
    server.toml, so every measured trial has passed them.
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
