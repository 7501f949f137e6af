"""Charts over the offered rate: curves of medians over trials."""

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


def of_experiment(held: Experiment, labels: list[str]) -> alt.LayerChart | None:
    """Return the medians over trials by offered rate of these variants; None without a point.

    Points that do not count are hollow, at rates at which the variant has none that counts.
    """
    column = LATENCY if LATENCY in held.points.columns else REPLY
    if RATE not in held.points.columns:
        return None
    order = labels[:SERIES]
    points = held.points.filter(pl.col("label").is_in(order), pl.col(RATE) > 0).drop_nulls(column)
    if points.is_empty():
        return None
    counted = by_trial.counted(points)
    rest = points.join(counted, on=["label", RATE], how="anti")
    medians, hollow = (_medians(frame, column) for frame in (counted, rest))
    chart = theme.lines(
        medians, RATE, column, "label", limited=hollow, log_x=True, log_y=True, order=order,
        x_title="offered rate (1/s)", y_title=TITLES[column], height=220,
    )  # fmt: skip
    return chart.properties(title=held.name)


def _medians(points: pl.DataFrame, column: str) -> pl.DataFrame:
    by = ["label", RATE]
    return points.group_by(by, maintain_order=True).agg(pl.col(column).median()).sort(by)
