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
@settings(max_examples=15, deadline=None)
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


def test_steps_are_paired_and_need_one_row_a_trial():
    """Trials that differ by a factor of ten among them still rise by the same, and it bends."""
    frame = pl.DataFrame({
        "idle": [0, 0, 9, 9, 19, 19], "n": [1, 2, 2, 1, 1, 2],
        "cpu_us": [10.0, 100, 109, 19, 48, 138],
    })  # fmt: skip
    first, second = stats.steps(frame, "idle", "cpu_us")
    assert (first.level, first.per_unit, first.step) == (9, *[Interval(2, 1, 1, 1)] * 2)
    assert second.per_unit.estimate == 2 and second.step.estimate == 2.9
    assert stats.steps(frame[:2], "idle", "cpu_us") == []
    with pytest.raises(ValueError, match="several rows"):
        stats.steps(pl.concat([frame, frame]), "idle", "cpu_us")


def test_range_coverage_is_how_often_the_range_holds_the_median():
    drawn = np.random.default_rng(1).exponential(1, (40_000, 3))
    holds = (drawn.min(axis=1) <= np.log(2)) & (drawn.max(axis=1) >= np.log(2))
    assert stats.range_coverage(3) == pytest.approx(holds.mean(), abs=0.01)
