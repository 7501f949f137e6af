"""The parts of curves: published values, and labels at their ends."""

import altair as alt
import numpy as np
import polars as pl
from scipy.optimize import isotonic_regression

from deathmatch.paper.theme import axes
from deathmatch.paper.theme.axes import GREY


def published(frame: pl.DataFrame, x: str, y: str, series: str, label: str) -> alt.LayerChart:
    """Return a source's own values: hollow diamonds on dashed grey lines, one for each series."""
    base = alt.Chart(frame).encode(
        x=f"{x}:Q",
        y=f"{y}:Q",
        tooltip=axes.tooltip(frame, **{series: None, x: None, y: label}),
        detail=f"{series}:N",
    )
    line = base.mark_line(color=GREY, strokeDash=[5, 4], strokeWidth=1.5)
    marks = base.mark_point(filled=False, shape="diamond", color=GREY, size=55, strokeWidth=1.5)
    return line + marks


def labels(
    frame: pl.DataFrame,
    x: str,
    y: str,
    series: str,
    *,
    domain: tuple[float, float],
    height: float = 300,
    log_y: bool = False,
    gap: float = 14,
) -> pl.DataFrame:
    """Return one row per series, at its last x: `x`, `series`, `end_px` and `label_px`.

    Both are heights in pixels from the top: of the curve's end, and of its label, which is as
    near to it as keeping `gap` between neighbours allows (least squares under an order
    constraint, hence isotonic regression). `domain` is the y axis's.
    """
    if log_y:
        # A logarithmic axis has no place for zero.
        frame = frame.filter(pl.col(y) > 0)
    ends = frame.drop_nulls([x, y]).sort(x).group_by(series, maintain_order=True).last()
    warp = np.log10 if log_y else np.asarray
    low, high = warp(np.array(domain, float))
    wanted = (high - warp(ends[y].to_numpy().astype(float))) / (high - low) * height
    order = np.argsort(wanted, kind="stable")
    steps = gap * np.arange(len(order))
    placed = np.empty(len(order))
    if len(order):
        # None below the axis, where its own labels are, if there is room above.
        lowest = max(0, height - steps[-1])
        placed[order] = np.clip(isotonic_regression(wanted[order] - steps).x, 0, lowest) + steps
    return ends.select(
        x, series, end_px=pl.Series(wanted).round(1), label_px=pl.Series(placed).round(1)
    )


def end_labels(ends: pl.DataFrame, series: str, colour: alt.Color) -> list[alt.Chart]:
    """Return the labels, a spot of their series' colour before each.

    The text itself is in ink: not every colour of the palette could be read as text. A curve that
    ends early has no line to its label: it would read as a plateau.
    """
    pixels = {"scale": None, "title": None, "axis": None}
    ours, theirs = (
        alt.Chart(ends.filter(pl.col("_theirs") == theirs)).encode(
            x=alt.value("width"),
            y=alt.Y("label_px:Q", **pixels),
            tooltip=alt.value("click: this series alone; double-click: all"),
        )
        for theirs in (False, True)
    )
    text = {"align": "left", "baseline": "middle", "cursor": "pointer"}
    layers = [
        ours.mark_text(dx=7, **text).encode(text=alt.value("●"), color=colour),
        ours.mark_text(dx=18, **text).encode(text="_label:N", detail=f"{series}:N"),
    ]
    if ends["_theirs"].any():
        layers.append(theirs.mark_text(dx=8, color=GREY, **text).encode(text="_label:N"))
    return layers
