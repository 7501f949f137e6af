"""The reviewer's guide: the trials behind each finding, and every other rate it was measured at.

In: findings as a dataset shows them. Out: a row for each comparison, as text.
"""

from collections.abc import Sequence

import polars as pl

from deathmatch.analysis import findings, phrases, selecting
from deathmatch.analysis.findings import Result, Shown
from deathmatch.analysis.searched import SHARE
from deathmatch.data.laws.law import TRIAL
from deathmatch.quantities.quantity import RATE, Points

LISTED = 3
"""At most so many other rates are listed; of more, the smallest and the largest number."""


def rows(results: Sequence[Result]) -> pl.DataFrame:
    """Return place, what, trials, elsewhere and minutes, of each comparison in order.

    `minutes`: the duration of the trials of its sides; None without trials.
    """
    return pl.DataFrame(
        [
            (place, shown.what, _trials(shown), *_looked_up(one, shown))
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


def _looked_up(one: Result, shown: Shown) -> tuple[str, float | None]:
    """Return the comparison at other rates, and the minutes that its trials took."""
    if shown.absent:
        return "", None
    place = (one.dataset, one.finding.experiment)
    variants = selecting.compared_variants(*place, shown.comparison)
    behind = [variant.points for variant, _ in variants]
    return _elsewhere(place, shown, behind), _minutes(place, behind)


def _elsewhere(place: tuple[str, str], shown: Shown, behind: list[pl.DataFrame]) -> str:
    """Return the same comparison at each other rate at which all that is compared was measured."""
    offered = selecting.points(*place)
    if RATE not in offered.columns or shown.comparison.quantity.points == Points.SEARCHES:
        return ""
    used = {rate for points in behind for rate in points[RATE]}
    known = []
    for rate_rps in sorted(set(offered[RATE]) - used):
        sides = {
            name: {key: level for key, level in side.items() if key != SHARE} | {RATE: rate_rps}
            for name, side in zip("ab", shown.comparison.sides)
        }
        there = shown.comparison.model_copy(update=sides | {"rate": None, "least_s": 0})
        again = findings.shown(*place, there)
        if again.number:
            rate = f"{phrases.number(rate_rps)} req/s" if rate_rps else "no fixed rate"
            known.append((again.interval.estimate, f"{again.number} at {rate}"))
    if len(known) > LISTED:
        return f"{len(known)} other rates, from {min(known)[1]} to {max(known)[1]}"
    return "; ".join(text for _, text in known)


def _minutes(place: tuple[str, str], behind: list[pl.DataFrame]) -> float:
    trials = pl.concat(points.select(TRIAL) for points in behind)
    return selecting.trials(*place).join(trials, on=TRIAL, how="semi")["wall_us"].sum() / 60e6
