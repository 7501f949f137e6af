"""Histograms of times, and the only definition of their quantiles.

In: frames with `time_us` and `count`, a row for each bin; other columns, such as `quantity`,
distinguish histograms. A null time means that it never ended: it is longer than any. Out: times in
us, and histograms that are merged by their counts, never by averages of their statistics.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl

SCHEMA = {"quantity": pl.String, "time_us": pl.Int64, "count": pl.Int64}
# All that was due in one second; `lost` are those of `count` that never ended.
SECONDS = {
    "quantity": pl.String, "since_start_s": pl.Int64, "count": pl.Int64, "lost": pl.Int64,
    "p50_us": pl.Int64, "p95_us": pl.Int64, "p99_us": pl.Int64, "max_us": pl.Int64,
}  # fmt: skip
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}
STATISTICS = {"mean": pl.Float64, "stddev": pl.Float64} | dict.fromkeys(
    [*QUANTILES, "max"], pl.Int64
)


def merge(histograms: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Return one histogram with the counts of all, which have the same columns.

    Rows are sorted by every column but `count`; null times are last.
    """
    whole = pl.concat(histograms)
    columns = [name for name in whole.columns if name != "count"]
    summed = whole.group_by(columns, maintain_order=True).agg(pl.col("count").sum())
    return summed.sort(columns, nulls_last=True).select(whole.columns)


def rounded_us(time_us: pl.Expr, digits: int) -> pl.Expr:
    """Return times, in us, rounded to a number of significant digits; null times stay."""
    magnitude = 10 ** (time_us.clip(1).log10().floor().clip(digits - 1) - (digits - 1))
    return ((time_us / magnitude).round() * magnitude).cast(pl.Int64)


def quantile(q: float, total: int | None = None) -> pl.Expr:
    """Return the q-quantile of `time_us`, in us, as an expression for a group of one histogram.

    It is the least time that at least a share q of all did not exceed (type 1 of Hyndman and Fan
    1996, The American Statistician 50). Times must be sorted, null ones last. With `total`, times
    that are missing from the histogram count as slower than all, like null times. A quantile that
    falls among these is null, as is that of an empty histogram.
    """
    count = pl.col("count").cast(pl.Int64)
    due = count.sum() if total is None else total
    return pl.col("time_us").filter(count.cum_sum() >= q * due).first()


def quantiles_us(
    histogram: pl.DataFrame, wanted: Sequence[float], total: int | None = None
) -> list[int | float | None]:
    """Return the quantiles `wanted`, between 0 and 1, of one quantity's times, in us.

    Each is defined by `quantile`; bins may be in any order, and several may have the same time.
    """
    ordered = histogram.sort("time_us", nulls_last=True)
    return list(ordered.select(quantile(q, total).alias(f"{q}") for q in wanted).row(0))


def quantile_us(histogram: pl.DataFrame, q: float, total: int | None = None) -> int | float | None:
    """Return one of `quantiles_us`."""
    (found,) = quantiles_us(histogram, [q], total)
    return found


def statistics(histogram: pl.DataFrame) -> dict[str, float | int | None]:
    """Return STATISTICS of one quantity's times; mean, stddev and max are of those that ended.

    Quantiles are those of `quantiles_us`; stddev is that of the population.
    """
    columns = histogram.select("time_us", pl.col("count").cast(pl.Int64))
    merged = columns.group_by("time_us", maintain_order=True).sum()
    known = merged.drop_nulls("time_us").sort("time_us")
    if known.is_empty():
        return dict.fromkeys(STATISTICS)
    times, counts = known["time_us"].to_numpy(), known["count"].cast(pl.Float64).to_numpy()
    mean = np.average(times, weights=counts)
    variance = np.average((times - mean) ** 2, weights=counts)
    found_us = quantiles_us(known, list(QUANTILES.values()), merged["count"].sum())
    return {
        "mean": float(mean), "stddev": float(variance**0.5), **dict(zip(QUANTILES, found_us)),
        "max": int(times[-1]),
    }  # fmt: skip
