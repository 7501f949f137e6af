"""The curves of servers by offered rate, of medians over trials."""

from typing import Any

import altair as alt
import polars as pl

from deathmatch.analysis import by_trial
from deathmatch.paper import theme
from deathmatch.quantities.quantity import RATE


def curves(points: pl.DataFrame, column: str, series: str, **options: Any) -> alt.LayerChart:
    """Return a curve of a column by offered rate for each of `series`, on logarithmic axes.

    Points that do not count are hollow, at rates at which the series has none that counts.
    `options` are those of `theme.lines`.
    """
    counted = by_trial.counted(points)
    rest = points.join(counted, on=[series, RATE], how="anti")
    medians, hollow = (_medians(frame, column, series) for frame in (counted, rest))
    return theme.lines(
        medians, RATE, column, series, limited=hollow, log_x=True, log_y=True, **options
    )


def _medians(points: pl.DataFrame, column: str, series: str) -> pl.DataFrame:
    by = [series, RATE]
    return points.group_by(by, maintain_order=True).agg(pl.col(column).median()).sort(by)
