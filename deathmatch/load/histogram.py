"""Histograms of times, and the one definition of their quantiles.

In: frames with `time_us` and `count`, a row for each bin; other columns, such as `quantity`, say of
what. A null time is that of what never ended, which took longer than any. Out: times in us, and
histograms that are merged by their counts, never by averages of what was taken of them.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl

SCHEMA = {"quantity": pl.String, "time_us": pl.Int64, "count": pl.Int64}
# Everything that was due in one second: `lost` are those of `count` that never ended.
SECONDS = {
    "quantity": pl.String, "since_start_s": pl.Int64, "count": pl.Int64, "lost": pl.Int64,
    "p50_us": pl.Int64, "p95_us": pl.Int64, "p99_us": pl.Int64, "max_us": pl.Int64,
}  # fmt: skip


def merge(histograms: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Return one histogram that has the counts of all, of the same columns.

    Rows are sorted by every column but `count`; null times are last.
    """
    whole = pl.concat(histograms)
    columns = [name for name in whole.columns if name != "count"]
    summed = whole.group_by(columns, maintain_order=True).agg(pl.col("count").sum())
    return summed.sort(columns, nulls_last=True).select(whole.columns)


def rounded_us(time_us: pl.Expr, digits: int) -> pl.Expr:
    """Return times, in us, to so many significant digits; null times stay."""
    magnitude = 10 ** (time_us.clip(1).log10().floor().clip(digits - 1) - (digits - 1))
    return ((time_us / magnitude).round() * magnitude).cast(pl.Int64)


def quantiles_us(
    histogram: pl.DataFrame, wanted: Sequence[float], total: int | None = None
) -> list[int | float | None]:
    """Return the quantiles `wanted`, between 0 and 1, of one quantity's times, in us.

    The q-quantile is the least time that at least a share q of all did not exceed (type 1 of
    Hyndman and Fan 1996, The American Statistician 50). With `total`, what is not in the histogram
    counts as slower than all that is, as what has a null time does: a quantile that falls there is
    None, as are those of an empty histogram. Bins may come in any order, and several of one time.
    """
    known = histogram.drop_nulls("time_us").sort("time_us")
    if known.is_empty():
        return [None] * len(wanted)
    all_of_them = histogram["count"].sum() if total is None else total
    times = known["time_us"]
    reached = known["count"].cast(pl.Int64).to_numpy().cumsum()
    places = np.searchsorted(reached, np.asarray(wanted) * all_of_them)
    return [times[int(place)] if place < len(times) else None for place in places]


def quantile_us(histogram: pl.DataFrame, q: float, total: int | None = None) -> int | float | None:
    """Return one of `quantiles_us`."""
    (found,) = quantiles_us(histogram, [q], total)
    return found


def quantile(q: float) -> pl.Expr:
    """Return `quantile_us` as an expression: of many histograms at once, in a group for each.

    Times must be in order, and none null.
    """
    reached = pl.col("count").cum_sum() >= q * pl.col("count").sum()
    return pl.col("time_us").filter(reached).first()
