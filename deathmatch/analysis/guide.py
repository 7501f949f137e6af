"""The reviewer's guide: the trials behind each finding, and every other rate it was measured at.

In: findings as a dataset shows them. Out: a row for each comparison, as text.
"""

from collections.abc import Sequence

import polars as pl

from deathmatch.analysis import findings, phrases, selecting
from deathmatch.analysis.findings import Result, Shown
from deathmatch.quantities.quantity import RATE

LISTED = 3
"""So many other rates are listed; of more, the least and the largest number."""


def rows(results: Sequence[Result]) -> pl.DataFrame:
    """Return place, what, trials, elsewhere and minutes, of each comparison in order.

    `minutes`: what the trials of its sides took; None where a record does not say.
    """
    return pl.DataFrame(
        [
            (place, shown.what, _trials(shown), _elsewhere(one, shown), _minutes(one, shown))
            for place, one in enumerate(results, 1)
            for shown in one.shown
        ],
        schema=["place", "what", "trials", "elsewhere", "minutes"],
        orient="row",
    )


def _trials(shown: Shown) -> str:
    """Return the variants that were compared, each with its number of trials."""
    sides = zip(shown.comparison.sides, shown.part.sides)
    return "; ".join(f"{selecting.selector_phrase(one)}: {len(known)}" for one, known in sides)


def _elsewhere(one: Result, shown: Shown) -> str:
    """Return the same comparison at each other rate at which all that is compared was measured."""
    place, compared = (one.dataset, one.finding.experiment), shown.comparison
    points = selecting.points(*place)
    if shown.absent or RATE not in points.columns:
        return ""
    variants = [variant for variant, _ in selecting.compared_variants(*place, compared)]
    used = {rate for variant in variants for rate in variant.points[RATE]}
    known = []
    for rate_rps in sorted(set(points[RATE]) - used):
        sides = {name: side | {RATE: rate_rps} for name, side in zip("ab", compared.sides)}
        there = compared.model_copy(update=sides | {"rate": None, "least_s": 0})
        again = findings.shown(*place, there)
        if again.number:
            known.append((again.interval.estimate, f"{again.number} at {_rate(rate_rps)}"))
    texts = [text for _, text in known]
    if len(known) > LISTED:
        texts = [f"{len(known)} other rates, from {min(known)[1]}", f"to {max(known)[1]}"]
    return " ".join(texts) if len(known) > LISTED else "; ".join(texts)


def _minutes(one: Result, shown: Shown) -> float | None:
    place, compared = (one.dataset, one.finding.experiment), shown.comparison
    if shown.absent:
        return None
    key = ["server", "variant", "n"]
    behind = [
        variant.points.select(key) for variant, _ in selecting.compared_variants(*place, compared)
    ]
    took = selecting.trials(*place).join(pl.concat(behind), on=key, how="semi")["wall_us"]
    return None if took.null_count() else took.sum() / 60e6


def _rate(rate_rps: int) -> str:
    return f"{phrases.number(rate_rps)} req/s" if rate_rps else "no fixed rate"
