"""Two variants compared in blocks of four trials: ABBA or BAAB, which one by chance.

In: one value a trial, with its block, its side and its place in the block. Out: the ratio B / A
with its interval, the difference that so many blocks would have shown, and A / A.

Within a block, a linear drift of the machine cancels; the order by chance turns what is left of any
other into noise, and not into an effect (Cox 1951, Biometrika 38, on trend-resistant orders).
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from deathmatch.analysis import trial_tests
from deathmatch.analysis.trial_tests import ERROR

ORDERS = ("ABBA", "BAAB")
SIDES = ("A", "B")

VALUES = {"block": pl.Int64, "place": pl.Int64, "side": pl.String, "value": pl.Float64}
EFFECT = {
    "blocks": pl.Int64,
    "ratio": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "detectable": pl.Float64,
}


@dataclass(frozen=True)
class Effect:
    """A ratio of two sides over blocks.

    `low` and `high` are its interval at ERROR, and `detectable` the ratio above 1 that so many
    blocks of this spread show in POWER of all cases; None with fewer than two blocks, and `ratio`
    None without any.
    """

    blocks: int
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    detectable: float | None = None

    @property
    def shown(self) -> bool:
        """Whether the interval excludes 1."""
        return self.low is not None and not self.low <= 1 <= self.high


def order(seed: int, block: int) -> str:
    """Return a block's order, "ABBA" or "BAAB"; blocks are numbered from 1."""
    return random.Random(f"{seed}/{block}").choice(ORDERS)


def effect(logarithms: Sequence[float]) -> Effect:
    """Return the effect of log ratios, one a block: `trial_tests.mean_interval` over blocks."""
    ratios = [math.exp(logarithm) for logarithm in logarithms]
    known, deviation = trial_tests.mean_interval(ratios, ERROR), trial_tests.spread(ratios)
    detectable = deviation if deviation is None else trial_tests.detectable(deviation, len(ratios))
    return Effect(
        known.trials, known.estimate, known.low, known.high,
        None if detectable is None else math.exp(detectable),
    )  # fmt: skip


def contrasts(values: pl.DataFrame) -> list[float]:
    """Return each whole block's log of B / A: half of ln B + ln B - ln A - ln A.

    `values` has the columns of VALUES. A block that lacks a trial, or has a value that is not
    positive, is left out.
    """
    return [
        sum(math.log(v) for v in sides["B"]) / 2 - sum(math.log(v) for v in sides["A"]) / 2
        for sides in _blocks(values)
    ]


def null_contrasts(values: pl.DataFrame, side: str, seed: int) -> list[float]:
    """Return for each whole block the log ratio of one side's two trials, the sign by chance.

    What they show of a difference is false: both trials are of the same variant. Without the random
    sign a drift of the machine would be a difference between earlier and later.
    """
    signs = random.Random(f"{seed}/{side}")
    return [
        signs.choice((-1, 1)) * (math.log(sides[side][0]) - math.log(sides[side][1]))
        for sides in _blocks(values)
    ]


def _blocks(values: pl.DataFrame) -> list[dict[str, list[float]]]:
    """Return the values of each side in each whole block, in their order in time."""
    usable = values.filter(pl.col("value").is_finite() & (pl.col("value") > 0))
    blocks = []
    for block in usable.sort("block", "place").partition_by("block", maintain_order=True):
        sides = {side: block.filter(side=side)["value"].to_list() for side in SIDES}
        if all(len(values_of_side) == 2 for values_of_side in sides.values()):
            blocks.append(sides)
    return blocks
