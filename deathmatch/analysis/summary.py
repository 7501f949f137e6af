"""The contents of a dataset for its report: machines, servers, points that do not count."""

from collections import Counter

import polars as pl

from deathmatch.analysis import findings, phrases, provenance
from deathmatch.analysis.outcomes import Outcome, labelled, outcomes
from deathmatch.analysis.views import Experiment, trials, why_not_measured
from deathmatch.data.laws.law import KEY
from deathmatch.plan import files

MOST_SERVERS = 10
"""With more servers the explorer lists them, as a table would fill pages."""


def experiments(dataset: str) -> list[Experiment]:
    """Return the experiments of a dataset that have trials, with labels of all factors."""
    held = (labelled(dataset, name) for name in files.names("experiment"))
    return [experiment for experiment in held if len(experiment.trials)]


def listed(held: list[Experiment], new: set[str]) -> list[Outcome]:
    """Return the outcomes of the `new` servers.

    Without new servers, those of all servers if there are MOST_SERVERS or fewer.
    """
    every = [outcome for experiment in held for outcome in outcomes(experiment)]
    if new:
        return [outcome for outcome in every if outcome.server in new]
    servers = {outcome.server for outcome in every} - set(files.instruments())
    return every if len(servers) <= MOST_SERVERS else []


def new_servers(held: list[Experiment]) -> set[str]:
    """Return the servers that the reference's paper lacks.

    None if there are more than MOST_SERVERS, as where the reference is missing.
    """
    known = {*files.instruments(), *trials(findings.REFERENCE)["server"]}
    new = {server for experiment in held for server in experiment.trials["server"]} - known
    return new if len(new) <= MOST_SERVERS else set()


def values(held: list[Experiment], new: set[str]) -> dict[str, str]:
    """Return the report's own numbers as phrases, by name.

    `machine`: the machines with kernel and day. `measured`: trials, servers and minutes. `points`:
    how many points do not count and why, the most frequent reason first. `new`: the titles of the
    `new` servers, or "".
    """
    trials = [experiment.trials for experiment in held]
    if not trials:
        nothing = "nothing was measured"
        return {"machine": nothing, "measured": nothing, "points": nothing, "new": ""}
    about = pl.concat([frame.select(*provenance.TESTBED, "started_at", "wall_us", "title", "server")
                       for frame in trials])  # fmt: skip
    day = f"{about['started_at'].min():%-d %B %Y}"
    minutes = about["wall_us"].sum() / 60e6
    servers = about["title"].n_unique()
    titles = about.filter(pl.col("server").is_in(new))["title"].unique().sort().to_list()
    return {
        "machine": f"{provenance.testbed(about)}, {day}",
        "measured": (
            f"{phrases.counted(len(about), 'trial')} of {phrases.counted(servers, 'server')} took "
            f"{phrases.number(minutes)} minutes, builds and set-up apart."
        ),
        "points": _points(held),
        "new": phrases.enumeration(titles),
    }


def _points(held: list[Experiment]) -> str:
    total, reasons = 0, Counter()
    for experiment in held:
        points = experiment.points
        total += len(points)
        kept = experiment.valid_points
        if len(kept) == len(points):
            continue
        for point in points.join(kept, on=KEY, how="anti").iter_slices(1):
            why = why_not_measured({"outcome": "measured"}, point).rpartition(" at ")[0]
            reasons[f"{why}, {experiment.name}"] += 1
    if not reasons:
        return f"All {phrases.counted(total, 'point')} count."
    listing = "; ".join(f"{count} {why}" for why, count in reasons.most_common())
    return f"{phrases.part(sum(reasons.values()), total)} points do not count: {listing}."
