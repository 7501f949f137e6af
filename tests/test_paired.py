"""Blocks of four trials: drift cancels, false differences are rare, the detectable one shows."""

import math

import numpy as np
import polars as pl
import pytest

from deathmatch.analysis import paired

BLOCKS, RUNS, NOISE = 6, 150, 0.02


def drift_of(kind: str, rng: np.random.Generator, trials: int) -> np.ndarray:
    """Return the logarithm of what the machine does to each trial."""
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


def shown(kind: str, ratio: float) -> list[paired.Effect]:
    return [paired.effect(paired.contrasts(values_of(n, kind, ratio))) for n in range(RUNS)]


# Five in a hundred by definition; of so many runs, 95 % of all counts lie below this share.
ALLOWED = 0.05 + 1.65 * math.sqrt(0.05 * 0.95 / RUNS)


@pytest.mark.parametrize("kind", ["steady", "linear", "random walk", "wave", "step"])
def test_a_variant_against_itself_shows_a_difference_in_one_of_twenty_at_most(kind):
    false = sum(effect.shown for effect in shown(kind, 1)) / RUNS
    assert false <= ALLOWED, false


@pytest.mark.parametrize("side", paired.SIDES)
@pytest.mark.parametrize("kind", ["steady", "linear", "random walk", "wave", "step"])
def test_each_side_against_itself_shows_none_either(kind, side):
    found = [
        paired.effect(paired.null_contrasts(values_of(n, kind, 1.3), side, n)) for n in range(RUNS)
    ]
    assert sum(effect.shown for effect in found) / RUNS <= ALLOWED


def test_a_linear_drift_is_not_in_the_ratio():
    rows = [(1, place, side, math.exp(0.2 * place)) for place, side in enumerate("ABBA")]
    (found,) = paired.contrasts(pl.DataFrame(rows, schema=paired.VALUES, orient="row"))
    assert found == pytest.approx(0)


def test_the_ratio_is_recovered_and_its_interval_holds_it():
    found = shown("random walk", 1.1)
    assert np.median([effect.ratio for effect in found]) == pytest.approx(1.1, rel=0.005)
    held = sum(effect.low <= 1.1 <= effect.high for effect in found) / RUNS
    assert held >= 1 - ALLOWED


def test_what_is_called_detectable_shows_in_four_of_five_runs():
    each = [effect.detectable for effect in shown("steady", 1)]
    at = float(np.median(each))
    share = sum(effect.shown for effect in shown("steady", at)) / RUNS
    # The formula takes the spread for known to both its quantiles: near, and not exact.
    assert 0.75 < share < 0.95


def test_a_block_that_lacks_a_value_does_not_count():
    whole = values_of(1, "steady", 1)
    for at in (
        whole.filter(~((pl.col("block") == 2) & (pl.col("place") == 3))),
        whole.with_columns(
            pl.when((pl.col("block") == 2) & (pl.col("place") == 0)).then(0.0).otherwise("value")
            .alias("value")
        ),
    ):  # fmt: skip
        assert len(paired.contrasts(at)) == BLOCKS - 1
        assert paired.effect(paired.contrasts(at)).blocks == BLOCKS - 1


def test_few_blocks_have_no_interval():
    assert paired.effect([]) == paired.Effect(0)
    one = paired.effect([math.log(2)])
    assert one.ratio == pytest.approx(2) and one.low is None and not one.shown
