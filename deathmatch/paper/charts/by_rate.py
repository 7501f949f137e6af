"""Charts over the offered rate: curves of medians over trials, and the CPU time by mode."""

from typing import Any

import altair as alt
import polars as pl

from deathmatch.analysis import by_trial
from deathmatch.analysis.static_files import BUSY
from deathmatch.analysis.views import Experiment
from deathmatch.paper import theme
from deathmatch.quantities.quantity import RATE, REPLY

SERIES = 7
"""More curves than this cannot be told apart."""
LATENCY = "message_latency_p50_us"
TITLES = {REPLY: "reply rate (req/s)", LATENCY: "median message latency (µs)"}
# Where the client was the limit at every point.
NO_POINT = "no point shows a server"


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


def by_mode(shares: pl.DataFrame, labels: list[str]) -> alt.ConcatChart:
    """Return a panel for each label, three in a row: `by_mode` stacked against the offered rate.

    An empty panel where there is no label.
    """
    panels = [_modes(shares.filter(pl.col("label") == label), label) for label in labels]
    return alt.concat(*(panels or [_modes(shares.clear(), NO_POINT)]), columns=3)


def _modes(shares: pl.DataFrame, title: str) -> alt.Chart:
    rates = alt.Axis(values=[10**power for power in range(1, 6)], format=",~r")
    return (
        alt.Chart(shares, title=title)
        .mark_area()
        .encode(
            x=alt.X(
                f"{RATE}:Q",
                title="offered rate (req/s)",
                scale=alt.Scale(type="log", nice=False),
                axis=rates,
            ),
            y=alt.Y("share:Q", title="of the CPU (%)", scale=alt.Scale(domain=[0, 100])),
            color=alt.Color("mode:N", scale=alt.Scale(domain=BUSY), title=None),
            order="order:Q",
            tooltip=["label", RATE, "mode", alt.Tooltip("share:Q", format=".1f")],
        )
        .properties(width=150, height=110)
    )
