#!/usr/bin/env python3
"""Say how likely the datasets that are planned for claims decide each, by `reference`'s spread.

    ./shell python bench/power.py

Writes `data/planned/power.csv`: for each claim with a design, then and now, what `reference` had,
how many trials the planned datasets have, how often as many, drawn as the earlier ones were, decide
the claim, and how long the trials of its designs take alone. Takes a minute of CPU time.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from deathmatch.analysis import judging, published, releases, rules, trial_tests  # noqa: E402
from deathmatch.analysis.by_trial import Values  # noqa: E402
from deathmatch.analysis.judging import Judgement, Part  # noqa: E402
from deathmatch.plan import designs, matrix  # noqa: E402
from deathmatch.plan.trial import Trial, Variant  # noqa: E402
from deathmatch.quantities.quantity import Kind  # noqa: E402
from deathmatch.run import progress  # noqa: E402

EARLIER, SEED = "reference", 43
FILE = ROOT / "data" / "planned" / "power.csv"
DRAWS = 400
LEAST = 2
"""Trials without which there is no spread."""
COLUMNS = {
    "claim": pl.String, "when": pl.String, "had": pl.Int64, "verdict": pl.String,
    "spread": pl.Float64, "distance": pl.Float64, "planned": pl.Int64, "chance": pl.Float64,
    "why": pl.String,
}  # fmt: skip
UNKNOWN = "the earlier dataset has no two trials of all that it compares"
UNPLANNED = "no trial is planned of what its design names"


def table(dataset: str, trials: Sequence[Trial], seed: int) -> pl.DataFrame:
    """Return COLUMNS, in the order of claims.toml: `chance` of deciding with `planned` trials.

    `dataset` is the earlier one, `trials` are those that are planned; of the variants of a claim's
    designs the one with the fewest counts. `had` and `verdict` are those of the rule in the earlier
    dataset, whether or not its needs were met there; `spread` is the deviation between its trials,
    and `distance` how far their mean is from the threshold, on the scale of the test and of the
    part that decides. `why` says why no chance is known.
    """
    by_claim: dict[str, list[designs.Design]] = {}
    for design in designs.designs():
        by_claim.setdefault(design.claim, []).append(design)
    ways = designs.by_variant(trials)
    rows = [
        {"claim": claim["id"], "when": when}
        | _row(dataset, chosen(dataset, claim), by_claim[claim["id"]], ways, seed)
        for claim in published.claims() if claim["id"] in by_claim
        for when, chosen in (("then", releases.then), ("now", releases.now))
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=COLUMNS)


def _planned(claim: dict, own: Sequence[designs.Design], ways: designs.Ways) -> int:
    """Return how many trials a claim on these releases has of each variant of its designs.

    Only those count that offer the design's rates for as long as it says.
    """
    named = {selector.get("server") for selector in published.selectors(claim["rule"])}
    variants = [(design, *variant) for design in own for variant in design.variants]
    compared = [variant for variant in variants if variant[1] in named] or variants
    return min((_offered(design, *variant, ways) for design, *variant in compared), default=0)


def _offered(design: designs.Design, server: str, variant: Variant, ways: designs.Ways) -> int:
    able = (
        len(planned)
        for planned in ways.get((design.experiment, server, variant), {}).values()
        if not designs.offer_lacking(design.grid, planned[0])
    )
    return max(able, default=0)


def _row(
    dataset: str, claim: dict, own: Sequence[designs.Design], ways: designs.Ways, seed: int
) -> dict:
    judged = rules.decide(dataset, claim["experiment"], claim["rule"])
    planned = _planned(claim, own, ways)
    row = {
        "had": judged.interval.trials, "verdict": judged.verdict, "spread": judged.spread,
        "distance": judged.distance, "planned": planned,
    }  # fmt: skip
    if not planned:
        return row | {"chance": None, "why": UNPLANNED}
    if not judged.parts or any(_trials(part) < LEAST for part in judged.parts):
        return row | {"chance": None, "why": UNKNOWN}
    return row | {"chance": chance(judged, planned, np.random.default_rng(seed)), "why": ""}


def chance(judged: Judgement, count: int, random: np.random.Generator) -> float:
    """Return how likely so many trials decide the rule that was judged."""
    decided = 0
    for _ in range(DRAWS):
        parts = [drawn(part, count, random) for part in judged.parts]
        decided += judging.together(parts).verdict in judging.DECIDED
    return decided / DRAWS


def drawn(part: Part, count: int, random: np.random.Generator) -> Part:
    """Return a part of a rule with so many trials, drawn as its own were.

    From the normal distribution on the scale of their kind, and what is compared by block as one
    ratio; without a scale, blocks are drawn from those that there are. A rate that was only a bound
    is taken as it is: the design has what settles it.
    """
    shared = set.intersection(*(side.blocks for side in part.sides)) if part.paired else set()
    if not shared:
        return replace(part, sides=[_again(side, count, random) for side in part.sides])
    sides = [side.within(shared) for side in part.sides]
    ratio = sides[0].over(sides[1]) if len(sides) == 2 else sides[0]
    if Kind.OUTCOME not in {side.kind for side in sides} and len(ratio) == len(shared):
        return replace(part, sides=[_again(ratio, count, random)])
    blocks = random.choice(sorted(shared), count)
    return replace(part, sides=[_of_blocks(side, blocks) for side in sides])


def _again(side: Values, count: int, random: np.random.Generator) -> Values:
    if side.kind not in trial_tests.SCALES or not trial_tests.has_scale(side.all, side.kind):
        return _of_blocks(side, random.choice(sorted(side.blocks), count))
    forward, back = trial_tests.SCALES[side.kind]
    scaled = forward(np.asarray(side.all, dtype=float))
    values = back(random.normal(scaled.mean(), scaled.std(ddof=1), count))
    return Values(dict(enumerate(values.tolist())), kind=side.kind, step=side.step)


def _of_blocks(side: Values, blocks: np.ndarray) -> Values:
    values = (side.by_block[block] for block in blocks.tolist())
    return Values(dict(enumerate(values)), kind=side.kind, step=side.step)


def _trials(part: Part) -> int:
    return min((len(side) for side in part.sides), default=0)


def alone() -> pl.DataFrame:
    """Return how long the trials of each claim's designs take by the plan, were they alone, s."""
    chosen = designs.designs()
    took_s = {
        claim: sum(map(progress.seconds, designs.planned(d for d in chosen if d.claim == claim)))
        for claim in dict.fromkeys(design.claim for design in chosen)
    }
    return pl.DataFrame({"claim": [*took_s], "alone_s": [*map(round, took_s.values())]})


def main() -> int:
    """Write the table, and print how many chances are below four in five."""
    trials = [trial for dataset in designs.unmeasured() for trial in matrix.trials(dataset)]
    found = table(EARLIER, trials, SEED).join(alone(), on="claim", maintain_order="left")
    FILE.parent.mkdir(exist_ok=True)
    found.with_columns(pl.col("spread", "distance", "chance").round(3)).write_csv(FILE)
    known = found["chance"].drop_nulls()
    print(f"{FILE.relative_to(ROOT)}: {len(found)} verdicts, of {len(known)} the chance is known; "
          f"{(known < 0.8).sum()} of these are below 0.8")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
