"""Charts over the offered rate: curves of medians over trials."""

from typing import Any

import altair as alt
import polars as pl

from deathmatch.analysis import by_trial
from deathmatch.analysis.views import Experiment
from deathmatch.paper import theme
from deathmatch.quantities.quantity import RATE, REPLY

SERIES = 7
"""More curves than this cannot be told apart."""
LATENCY = "message_latency_p50_us"
TITLES = {REPLY: "reply rate (req/s)", LATENCY: "median message latency (µs)"}


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


def of_experiment(held: Experiment, labels: list[str]) -> alt.LayerChart | None:
    """Return the medians over trials by offered rate of these variants; None without a point.

    Points that do not count are hollow.
    """
    column = LATENCY if LATENCY in held.points.columns else REPLY
    if RATE not in held.points.columns:
        return None
    order = labels[:SERIES]
    points = held.points.filter(pl.col("label").is_in(order), pl.col(RATE) > 0).drop_nulls(column)
    if points.is_empty():
        return None
    chart = curves(
        points, column, "label", order=order, x_title="offered rate (1/s)", y_title=TITLES[column],
        height=220,
    )  # fmt: skip
    return chart.properties(title=held.name)


def _medians(points: pl.DataFrame, column: str, series: str) -> pl.DataFrame:
    by = [series, RATE]
    return points.group_by(by, maintain_order=True).agg(pl.col(column).median()).sort(by)
