"""What a dry run reports of a dataset: short points, and designs of claims that it lacks."""

import argparse
from collections.abc import Iterable, Sequence

from deathmatch.errors import as_typed
from deathmatch.plan import designs, files
from deathmatch.plan.dataset import LEAST_POINT_S, least_overload_s
from deathmatch.plan.trial import Trial
from deathmatch.run import progress


def main(given: argparse.Namespace) -> int:
    """Print every design."""
    print(*by_experiment(), sep="\n")
    return 0


def by_experiment() -> list[str]:
    """Return every design: for each experiment its trials and duration, then a line a design."""
    chosen = designs.designs()
    lines = []
    for experiment in dict.fromkeys(design.experiment for design in chosen):
        own = [design for design in chosen if design.experiment == experiment]
        trials = designs.planned(own)
        lasts = progress.duration(sum(map(progress.seconds, trials)))
        lines.append(f"{experiment}: {len(trials)} trials of all designs together, about {lasts}")
        lines += [f"  {design.claim}: {_variants(design)}: {design.load}" for design in own]
    return lines


def _variants(design: designs.Design) -> str:
    """Return "yucan, null with backlog=1,128; no experiment has …"."""
    named = [f"{name}={','.join(map(str, v))}" for name, v in design.grid.levels.items()]
    factors = f" with {' '.join(named)}" if named else ""
    unknown = design.unknown_levels
    planned = f" (the experiment has no {', '.join(unknown)} yet)" if unknown else ""
    return f"{', '.join(design.grid.servers)}{factors}{planned}"


def unmet_designs(name: str, trials: Sequence[Trial]) -> list[str]:
    """Return what a dataset lacks of the designs: a line a claim if it `decides_claims`, else one.

    `trials` are all of it. There is no line where nothing is lacking.
    """
    lacking = designs.unmet(trials)
    if not lacking:
        return []
    total = len({design.claim for design in designs.designs()})
    count = f"claims: {len(lacking)} of {total} designs are not met by dataset {name}"
    if files.dataset(name).decides_claims:
        return [count, *(f"  {claim}: {why}" for claim, why in lacking.items())]
    return [f"{count}; {as_typed('deathmatch designs')} prints them"]


def short_points(trials: Iterable[Trial]) -> list[str]:
    """Return a line with the shortest points of each experiment, and how long they should be.

    That is LEAST_POINT_S where a search offers the overload. No line where all are long enough.
    The strict check has rules of what was measured, DM-POINT-TIME and DM-OVERLOAD-TIME.
    """
    short: dict[str, tuple[float, float]] = {}
    for trial in trials:
        if trial.duration_s is None:
            continue
        search, least_s = trial.plan.search, least_overload_s(trial.experiment.load_as_written)
        if search and search.overload_shares:
            least_s = LEAST_POINT_S
        if trial.duration_s < least_s:
            name = trial.experiment.name
            shortest = (trial.duration_s, least_s)
            short[name] = min(shortest, short.get(name, shortest))
    if not short:
        return []
    points = ", ".join(
        f"{name} {seconds:g} of {least_s:g} s" for name, (seconds, least_s) in sorted(short.items())
    )
    return [f"short points: {points}; an overload looks answered until twice the time-out"]
