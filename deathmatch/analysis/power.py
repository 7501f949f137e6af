"""How likely planned trials decide the claims that have a design, by an earlier dataset's spread.

In: an earlier dataset, and the trials of a planned one. Out: a row for each claim, then and now.

Trials are drawn as the earlier ones were, with their mean and spread, and judged by the claim's own
rule; the chance is the share of draws that decide it, either way. It holds if what the rule needs
is there, and as far as three trials know a spread: its 95 % interval goes from half of it to six
times (chi-squared, two degrees of freedom).
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from deathmatch.analysis import judging, published, releases, rules, trial_tests
from deathmatch.analysis.by_trial import Values
from deathmatch.analysis.judging import Judgement, Part
from deathmatch.plan import designs
from deathmatch.plan.trial import Trial, Variant
from deathmatch.quantities.quantity import Kind

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
