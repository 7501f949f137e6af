"""The curves of a small dataset's servers: one chart for each experiment whose load is a rate."""

import altair as alt
import polars as pl

from deathmatch.analysis.views import Experiment
from deathmatch.paper.charts import by_rate
from deathmatch.quantities.quantity import RATE, REPLY

SERIES = 7
"""More curves than this cannot be told apart."""
LATENCY = "message_latency_p50_us"
TITLES = {REPLY: "reply rate (req/s)", LATENCY: "median message latency (µs)"}


def curve(held: Experiment, labels: list[str]) -> alt.LayerChart | None:
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
    chart = by_rate.curves(
        points, column, "label", order=order, x_title="offered rate (1/s)", y_title=TITLES[column],
        height=220,
    )  # fmt: skip
    return chart.properties(title=held.name)
