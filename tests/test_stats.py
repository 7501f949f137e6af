"""Statistics: known values, and what must hold for any values."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import bootstrap

from deathmatch.analysis import stats
from deathmatch.analysis.stats import Interval


def test_interval_of_known_values():
    assert stats.interval([]) == Interval()
    assert stats.interval([None]) == stats.interval([])
    assert stats.interval([3.0]) == Interval(1, 3.0)
    assert stats.interval([2, 2, 2]) == Interval(3, 2.0, 2.0, 2.0)
    assert stats.interval([1, None, 9]) == Interval(2, 5.0, 1.0, 9.0)
    # With three, a resample's median is the smallest in 7 of 27: the interval is the range.
    assert stats.interval([7, 1, 4]) == Interval(3, 4.0, 1.0, 7.0)


@given(st.lists(st.floats(0.01, 1e6), min_size=2, max_size=12, unique=True))
@settings(max_examples=50, deadline=None)
def test_interval_is_scipy_s(values):
    ends = bootstrap(
        (values,), np.median, n_resamples=stats.RESAMPLES, confidence_level=stats.CONFIDENCE,
        method="percentile", rng=np.random.default_rng(stats.SEED),
    ).confidence_interval  # fmt: skip
    found = stats.interval(values)
    assert (found.low, found.high) == (ends.low, ends.high)


def blocks(above: list[float | None], below: list[float | None]) -> pl.DataFrame:
    rows = [(n, "a", x) for n, x in enumerate(above)] + [(n, "b", x) for n, x in enumerate(below)]
    return pl.DataFrame(
        rows, schema={"n": pl.Int64, "who": pl.String, "x": pl.Float64}, orient="row"
    )


def ratio(frame: pl.DataFrame) -> Interval:
    return stats.ratio(frame, pl.col("who") == "a", pl.col("who") == "b", "x")


def test_ratio_is_paired_by_block():
    # The machine is ten times slower in the second block; the ratio does not see it.
    assert ratio(blocks([200, 20], [100, 10])) == Interval(2, 2, 2, 2)
    assert ratio(blocks([1, 2, 3], [1, None, 0])).trials == 1
    assert ratio(blocks([], [])).estimate is None
    with pytest.raises(ValueError, match="several rows"):
        ratio(pl.concat([blocks([1], [2])] * 2))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.floats(1, 1e6), st.floats(1, 1e6)), min_size=1, max_size=6),
       st.floats(0.01, 100))  # fmt: skip
def test_ratio_does_not_depend_on_the_unit(pairs, scale):
    above, below = zip(*pairs)
    plain = ratio(blocks(list(above), list(below)))
    scaled = ratio(blocks([x * scale for x in above], [x * scale for x in below]))
    assert scaled.estimate == pytest.approx(plain.estimate)
    swapped = ratio(blocks(list(below), list(above)))
    if len(pairs) % 2:
        assert swapped.estimate == pytest.approx(1 / plain.estimate)


def test_summarise_gives_one_row_a_group():
    frame = pl.DataFrame({"server": ["a", "a", "b"], "n": [1, 2, 1], "x": [1.0, 3.0, None]})
    found = stats.summarise(frame, ["server"], "x")
    assert found.columns == ["server", *stats.INTERVAL]
    assert found.rows() == [("a", 2, 2.0, 1.0, 3.0), ("b", 0, None, None, None)]


def planted(
    each_us: dict[tuple[int, int], float], trials: int = 3, noise: float = 0
) -> pl.DataFrame:
    """Return costs of 80 us at none, rising between levels by what is planted for each unit."""
    draw, cost, rows = np.random.default_rng(3), 80.0, []
    for (below, at), each in ({(0, 0): 0.0} | each_us).items():
        cost += each * (at - below)
        rows += [(at, n, cost * draw.normal(1, noise)) for n in range(trials)]
    return pl.DataFrame(rows, schema=["idle", "n", "cpu_us"], orient="row")


def test_steps_find_a_cost_that_bends():
    """A line through these would say 0.79 at every level, with an interval that holds none."""
    bent = {(0, 500): 0.47, (500, 900): 0.81, (900, 4000): 0.99}
    found = stats.steps(planted(bent), "idle", "cpu_us")
    assert [rise.level for rise in found] == [level for _, level in bent]
    assert [rise.step.estimate for rise in found] == pytest.approx(list(bent.values()))
    means = [0.47, (500 * 0.47 + 400 * 0.81) / 900, (235 + 324 + 3100 * 0.99) / 4000]
    assert [rise.per_unit.estimate for rise in found] == pytest.approx(means)
    assert {rise.per_unit.trials for rise in found} == {3}


def test_steps_are_paired_and_want_one_row_a_trial():
    """Trials that differ by a factor of ten among them still rise by the same."""
    frame = pl.DataFrame({"idle": [0, 0, 9, 9], "n": [1, 2, 2, 1], "cpu_us": [10.0, 100, 109, 19]})
    assert stats.steps(frame, "idle", "cpu_us")[0].per_unit == Interval(2, 1, 1, 1)
    assert (
        stats.steps(frame[:2], "idle", "cpu_us") == [] == stats.steps(frame[:0], "idle", "cpu_us")
    )
    with pytest.raises(ValueError, match="several rows"):
        stats.steps(pl.concat([frame, frame]), "idle", "cpu_us")


def test_a_flat_cost_has_no_side_and_a_saving_has_one():
    flat = stats.steps(planted({(0, 8000): 0.0}, trials=5, noise=0.05), "idle", "cpu_us")[0]
    less = stats.steps(planted({(0, 8000): -0.004}, trials=5, noise=0.01), "idle", "cpu_us")[0]
    more = stats.steps(planted({(0, 8000): 0.004}, trials=5, noise=0.01), "idle", "cpu_us")[0]
    assert [rise.per_unit.side_of_zero for rise in (flat, less, more)] == [0, -1, 1]
    assert stats.interval([-1.0]).side_of_zero == 0


@pytest.mark.parametrize("trials", [2, 3, 5])
def test_range_coverage_is_how_often_the_range_holds_the_median(trials):
    drawn = np.random.default_rng(1).exponential(1, (40_000, trials))
    holds = (drawn.min(axis=1) <= np.log(2)) & (drawn.max(axis=1) >= np.log(2))
    assert stats.range_coverage(trials) == pytest.approx(holds.mean(), abs=0.01)


def test_quantiles_of_no_histogram_have_their_types():
    kinds = {"label": pl.String, "time_us": pl.Int64, "count": pl.Int64}
    rows = [("a", 10, 980), ("a", 500, 20), ("b", 7, 100)]
    full = pl.DataFrame(rows, schema=kinds, orient="row")
    wanted = {"p50_us": 0.5, "p99_us": 0.99}
    found = stats.quantiles(full, ["label"], wanted)
    # Of a hundred, no 99th percentile can be told.
    assert found.rows() == [("a", 10, 500), ("b", 7, None)]
    lost = stats.quantiles(full, ["label"], wanted, {("a",): 10_000, ("b",): 100})
    assert lost.rows() == [("a", None, None), ("b", 7, None)]
    assert stats.quantiles(full.clear(), ["label"], wanted).schema == found.schema
