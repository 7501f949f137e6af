"""Classes of servers: planted groups are found, and equal servers are not split."""

import numpy as np
import polars as pl
import pytest

from deathmatch.analysis import classes
from deathmatch.analysis.by_trial import Values
from deathmatch.quantities.definitions import CAPACITY, CPU_PER_REPLY

SEEDS = 40
SPREAD = 0.03
"""Between the trials of one server; the rounds drift by three times as much for all."""


def planted(seed: int, centres: list[float], rounds: int) -> dict[str, Values]:
    random = np.random.default_rng(seed)
    drift = random.normal(0, 3 * SPREAD, rounds)
    return {
        f"server {at}": Values({
            n + 1: float(centre * np.exp(drift[n] + random.normal(0, SPREAD)))
            for n in range(rounds)
        })
        for at, centre in enumerate(centres)
    }  # fmt: skip


def test_planted_groups_are_found():
    centres = [100, 100, 100, 150, 150, 300, 300, 300, 300]
    wanted = [1, 1, 1, 2, 2, 3, 3, 3, 3]
    right = [
        [classes.of_values(one, higher_is_better=False)[f"server {at}"] for at in range(9)]
        == wanted
        for one in (planted(seed, centres, 5) for seed in range(SEEDS))
    ]
    # Equal servers may be split in a twentieth; a gap of a half is found in all.
    assert sum(right) >= 0.95 * SEEDS


@pytest.mark.parametrize("count", [2, 10])
def test_equal_servers_share_a_class(count):
    split = [
        max(classes.of_values(planted(seed, [100] * count, 7), True).values()) > 1
        for seed in range(SEEDS)
    ]
    # 2 of 40 are allowed; the binomial's own error is added to them.
    assert sum(split) <= 5


def test_the_anchor_is_fixed_so_that_a_chain_of_small_steps_is_no_class():
    centres = [100 * 1.04**step for step in range(12)]
    chain = classes.of_values(planted(1, centres, 9), higher_is_better=False)
    assert max(chain.values()) > 1
    assert list(chain.values()) == sorted(chain.values())


def test_a_bound_separates_no_classes_and_few_rounds_give_none():
    far = planted(2, [100, 300], 7)
    assert [*classes.of_values(far, higher_is_better=True).values()] == [1, 2]
    bounded = {"a": Values(far["server 0"].by_block, at_least=frozenset({1})), "b": far["server 1"]}
    assert [*classes.of_values(bounded, higher_is_better=True).values()] == [1, 1]
    short = {n: far["server 0"].by_block[n] for n in (1, 2, 3, 4)}
    few = {"few": Values(short), "enough": far["server 1"]}
    assert classes.of_values(few, higher_is_better=True) == {"enough": 1}
    assert classes.of_values({}, higher_is_better=True) == {}


@pytest.mark.parametrize(("quantity", "best"), [(CPU_PER_REPLY, "cheap"), (CAPACITY, "dear")])
def test_the_better_row_is_first_whichever_way_is_better(quantity, best):
    rows = [(name, n, 100.0 * factor + n) for name, factor in (("cheap", 1), ("dear", 3))
            for n in range(1, 8)]  # fmt: skip
    trials = pl.DataFrame(rows, {"label": pl.String, "n": pl.Int64, quantity.name: pl.Float64},
                          orient="row")  # fmt: skip
    assert classes.of_trials(trials, quantity, ["label"]).rows()[0] == (best, 1)


def test_classes_by_cost_are_of_the_lowest_rate_that_all_have():
    rows = [
        (name, n, rate, 1000, int((cost if rate == 2000 else 1) * 1e9 * (1 + n / 1000)))
        for name, cost, rates in (("a", 1, (1000, 2000)), ("b", 2, (2000, 0)))
        for rate in rates
        for n in range(1, 8)
    ]
    names = ("label", "n", "offered_rate_rps", "replies", "server_cpu_ns")
    points = pl.DataFrame(rows, names, orient="row")
    assert classes.by_cost(points, ["label"]).rows() == [("a", 1), ("b", 2)]
    apart = points.filter((pl.col("label") == "a") | (pl.col("offered_rate_rps") == 0))
    assert classes.by_cost(apart, ["label"]).height == 1
    assert classes.by_cost(points.clear(), ["label"]).is_empty()
