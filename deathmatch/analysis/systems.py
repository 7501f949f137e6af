"""Each system (a folder of `servers/`): the version that ran, its variants, its conformance."""

import polars as pl

from deathmatch.plan.server import Server


def measured(trials: pl.DataFrame) -> dict[str, dict[str, str]]:
    """Return the first `version` and the `conformance` of each server of these trials, by name."""
    return {
        name: {"version": next(iter(own["version"].drop_nulls()), ""),
               "conformance": conformance(own)}
        for (name,), own in trials.partition_by("server", as_dict=True).items()
    }  # fmt: skip


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


def conformance(trials: pl.DataFrame) -> str:
    """Return in how many trials the checks passed, else the first failure.

    A trial is timed only if all checks of its experiment pass, except the known `deviations` of its
    server.toml, so every measured trial has passed them.
    """
    ends = zip(trials["outcome"], trials["reason"])
    failed = [end for end in ends if not end[0].startswith("measured")]
    if not failed:
        known = sorted({name for names in trials["deviations"].to_list() for name in names or ()})
        but = f", but for: {'; '.join(known)}" if known else ""
        return f"passed in {len(trials)} of {len(trials)} trials{but}"
    outcome, reason = failed[0]
    first = reason.splitlines()[0] if reason else ""
    return f"{outcome} in {len(failed)} of {len(trials)} trials: {first}"
