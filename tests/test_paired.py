"""Blocks of four trials: drift cancels, false differences are rare, the detectable one shows."""

import math

import numpy as np
import polars as pl
import pytest

from deathmatch.analysis import paired

BLOCKS, RUNS, NOISE = 6, 150, 0.02


def drift_of(kind: str, rng: np.random.Generator, trials: int) -> np.ndarray:
    """Return the logarithm of the machine's effect on each trial."""
    at = np.arange(trials)
    return {
        "steady": np.zeros(trials),
        "linear": 0.3 * at / trials,
        "random walk": np.cumsum(rng.normal(0, 0.02, trials)),
        "wave": 0.1 * np.sin(2 * math.pi * at / 8 + rng.uniform(0, 2 * math.pi)),
        "step": np.where(at < rng.integers(0, trials), 0, 0.2),
    }[kind]


def values_of(seed: int, kind: str, ratio: float) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    drift = drift_of(kind, rng, 4 * BLOCKS) + rng.normal(0, NOISE, 4 * BLOCKS)
    sides = [(b, p, s) for b in range(1, BLOCKS + 1) for p, s in enumerate(paired.order(seed, b))]
    rows = [
        (block, place, side, math.exp(each) * (ratio if side == "B" else 1))
        for (block, place, side), each in zip(sides, drift)
    ]
    return pl.DataFrame(rows, schema=paired.VALUES, orient="row")


# Five in a hundred by definition; 95 % of the counts of so many runs lie below this share.
ALLOWED = 0.05 + 1.65 * math.sqrt(0.05 * 0.95 / RUNS)


@pytest.mark.parametrize("kind", ["steady", "linear", "random walk", "wave", "step"])
def test_the_interval_holds_what_is_planted(kind):
    runs = [values_of(n, kind, 1.1) for n in range(RUNS)]
    found = [paired.effect(paired.ratios(values)) for values in runs]
    assert np.median([effect["ratio"] for effect in found]) == pytest.approx(1.1, rel=0.005)
    assert sum(not effect["low"] <= 1.1 <= effect["high"] for effect in found) / RUNS <= ALLOWED
    none = [paired.effect(paired.ratios(values_of(n, kind, 1))) for n in range(RUNS)]
    assert sum(map(paired.shows, none)) / RUNS <= ALLOWED


def test_a_detectable_difference_shows_in_four_of_five_runs():
    runs = [values_of(n, "steady", 1) for n in range(RUNS)]
    at = float(np.median([paired.effect(paired.ratios(one))["detectable"] for one in runs]))
    found = [paired.effect([at * ratio for ratio in paired.ratios(one)]) for one in runs]
    # The formula takes the spread for known to both its quantiles: near, and not exact.
    assert 0.75 < sum(map(paired.shows, found)) / RUNS < 0.95


def test_a_block_that_lacks_a_value_does_not_count():
    whole = values_of(1, "steady", 1)
    second = pl.col("block") == 2
    zero = pl.when(second & (pl.col("place") == 0)).then(0.0).otherwise("value").alias("value")
    for at in (whole.filter(~(second & (pl.col("place") == 3))), whole.with_columns(zero)):
        assert paired.effect(paired.ratios(at))["blocks"] == BLOCKS - 1


def test_few_blocks_have_no_interval():
    assert paired.effect([]) == dict.fromkeys(paired.EFFECT) | {"blocks": 0}
    one = paired.effect([2.0])
    assert one["ratio"] == pytest.approx(2) and one["low"] is None and not paired.shows(one)
