"""A row for each category: values as dots with their intervals."""

import altair as alt
import polars as pl

from deathmatch.paper.theme import axes
from deathmatch.paper.theme.look import GREY


def dots(
    frame: pl.DataFrame,
    x: str,
    category: str,
    *,
    low: str | None = None,
    high: str | None = None,
    published: str | None = None,
    more: str | None = None,
    colour: str | None = None,
    x_title: str | None = None,
    log_x: bool = False,
    order: list[str] | None = None,
    width: int = 400,
) -> alt.LayerChart:
    """Return one row per category: the value as a dot, its interval as a bar.

    `published` names a column of the same frame holding the source's value (a hollow grey
    diamond; null where there is none). `more` names one of booleans: where true, an arrowhead
    right of the dot says that the value may be higher. The category's name at the axis is its
    label. `colour` names a column whose levels stand below each other in a row. Where no value was
    measured there is no row.
    """
    frame = axes.measured(frame, x)
    scale = alt.Scale(type="log") if log_x else alt.Scale(zero=True)
    rows = alt.Y(
        f"{category}:N",
        title=None,
        sort=order or frame[category].unique(maintain_order=True).to_list(),
        axis=alt.Axis(labelLimit=310, grid=True),
    )
    axis = alt.X(f"{x}:Q", title=x_title or axes.title(x), scale=scale)
    if log_x:
        known = [frame[column] for column in (x, low, high, published) if column]
        span = pl.concat([column.cast(pl.Float64) for column in known]).drop_nulls()
        powers = [10.0**k for k in range(-9, 16) if 10.0**k <= (span.max() or 1)]
        shown = [p for p in powers if 10 * p > (span.min() or 1)]
        # Labels of a narrow panel would run into each other.
        ticks = shown if width >= 300 else shown[::2]
        axis = axis.axis(values=ticks, format=",~r")
    tint = (
        {"color": alt.Color(f"{colour}:N", title=None), "yOffset": f"{colour}:N"} if colour else {}
    )
    columns = [category, x, *(c for c in (low, high, published, more) if c)]
    base = alt.Chart(frame).encode(x=axis, y=rows, tooltip=axes.tooltip(columns))
    layers = [base.mark_point(size=70).encode(**tint)]
    if low and high and frame[low].count():
        bar = base.mark_bar(height=2).encode(x=f"{low}:Q", x2=high, **tint)
        layers.insert(0, bar)
    if more and frame[more].any():
        arrow = base.transform_filter(f"datum['{more}']").mark_point(
            shape="triangle-right", size=45, filled=True, xOffset=11
        )
        layers.append(arrow)
    if published:
        mark = base.mark_point(filled=False, shape="diamond", size=75, strokeWidth=1.5, color=GREY)
        layers.append(mark.encode(x=f"{published}:Q"))
    row = 36 if colour else 24
    # A higher chart than 940 is set with type of less than 7 pt on a printed page.
    height = min(940, row * max(1, frame[category].n_unique()))
    return alt.layer(*layers).properties(width=width, height=height)
