"""The one histogram: its quantiles against the sample that it counts, and merging by counts."""

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from deathmatch.load import histogram

COUNTS = st.dictionaries(st.integers(0, 10**8), st.integers(1, 50), min_size=1, max_size=20)
LEVELS = [0.01, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0]


def made(counts: dict[int | None, int], quantity: str = "latency") -> pl.DataFrame:
    rows = [(quantity, time_us, count) for time_us, count in counts.items()]
    return pl.DataFrame(rows, schema=histogram.SCHEMA, orient="row")


def test_nothing_counted_has_no_quantile():
    assert histogram.quantile_us(made({}), 0.5) is None
    assert histogram.quantile_us(made({}), 0.5, total=10) is None
    assert histogram.quantiles_us(made({None: 3}), [0.5, 1]) == [None, None]


@given(COUNTS, st.sampled_from(LEVELS))
def test_quantile_is_that_of_the_expanded_sample(counts, q):
    sample = np.repeat(list(counts), list(counts.values()))
    # The same definition, by another hand.
    expected = np.quantile(sample, q, method="inverted_cdf")
    assert histogram.quantile_us(made(counts), q) == expected


@given(COUNTS, st.integers(1, 100), st.sampled_from(LEVELS))
def test_a_request_without_an_end_took_longer_than_any(counts, lost, q):
    """As a null time, as part of the total, or as a time beyond all others: it is the same."""
    whole = sum(counts.values()) + lost
    beyond = 10**9
    expected = histogram.quantile_us(made(counts | {beyond: lost}), q)
    expected = None if expected == beyond else expected
    assert histogram.quantile_us(made(counts | {None: lost}), q) == expected
    assert histogram.quantile_us(made(counts), q, total=whole) == expected


@settings(deadline=None)
@given(st.lists(COUNTS, min_size=1, max_size=4), st.sampled_from(LEVELS))
def test_merging_adds_counts(each, q):
    merged = histogram.merge(map(made, each))
    summed: dict[int, int] = {}
    for counts in each:
        for time_us, count in counts.items():
            summed[time_us] = summed.get(time_us, 0) + count
    assert merged["time_us"].to_list() == sorted(summed)
    assert dict(merged.select("time_us", "count").rows()) == summed
    samples = [np.repeat(list(counts), list(counts.values())) for counts in each]
    expected = np.quantile(np.concatenate(samples), q, method="inverted_cdf")
    assert histogram.quantile_us(merged, q) == expected
    assert histogram.quantile_us(pl.concat(map(made, each)), q) == expected, "as unmerged bins"


def test_merging_keeps_quantities_apart_and_null_times_last():
    parts = [made({5: 1, None: 2}), made({5: 4}), made({5: 8}, "handshake_time"), made({None: 1})]
    merged = histogram.merge(parts)
    assert merged.rows() == [("handshake_time", 5, 8), ("latency", 5, 5), ("latency", None, 3)]
    assert dict(merged.schema) == dict(parts[0].schema)
