"""What the designs of claims ask for, and what a dataset lacks of them, as lines for a terminal."""

import argparse
from collections.abc import Sequence

from deathmatch.plan import designs, files
from deathmatch.plan.trial import Trial
from deathmatch.plan.typed import typed
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


def of_dataset(name: str, trials: Sequence[Trial]) -> list[str]:
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
    return [f"{count}; {typed('deathmatch designs')} prints them"]
