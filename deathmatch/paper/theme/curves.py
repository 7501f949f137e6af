"""Curves by series, in one chart or in a small one for each level, and rows of dots."""

import warnings

import altair as alt
import polars as pl

from deathmatch.paper.theme import axes, parts
from deathmatch.paper.theme.axes import GREY, PALETTE

# Pixels of a row of `dots`.
_ROW = 18


def lines(
    frame: pl.DataFrame,
    x: str,
    y: str,
    series: str,
    *,
    low: str | None = None,
    high: str | None = None,
    published: pl.DataFrame | None = None,
    published_label: str = "published",
    limited: pl.DataFrame | None = None,
    x_title: str | None = None,
    y_title: str | None = None,
    log_x: bool = False,
    log_y: bool = False,
    width: int = 490,
    height: int = 300,
    order: list[str] | None = None,
) -> alt.LayerChart:
    """Return curves by series with their intervals, labelled at the right edge.

    `published` has the columns x, y and series, and is drawn with what was measured, not alone.
    So has `limited`: points that show the testbed's limit, drawn hollow and joined by no line.
    `order` fixes which series gets which colour, so that a server looks the same in every figure.
    Use at most seven series: colours repeat.
    """
    named = pl.col(series).cast(pl.String)
    ours = axes.measured(frame, y).with_columns(named.alias("_label"), _theirs=pl.lit(False))
    alone = published is None or ours.is_empty()
    theirs = (frame.clear() if alone else published).with_columns(
        (named + f", {published_label}").alias("_label"), _theirs=pl.lit(True)
    )
    hollow = ours.clear() if limited is None else axes.measured(limited, y)
    domain = axes.domain([ours, theirs, hollow], [y, low, high], log_y)
    x_scale = alt.Scale(
        type="log" if log_x else "linear",
        domain=axes.domain([ours, theirs, hollow], [x], log_x, zero=False, room=1.0),
        nice=False,
    )
    y_scale = alt.Scale(type="log" if log_y else "linear", domain=domain, nice=False)
    scale = alt.Scale(domain=order or ours["_label"].unique(maintain_order=True).to_list())
    colour = alt.Color(f"{series}:N", legend=None, scale=scale)
    # A click on a label, point or legend entry isolates a series.
    chosen = alt.selection_point(fields=[series], bind="legend", on="click", clear="dblclick")
    faded = alt.when(chosen).then(alt.value(1)).otherwise(alt.value(0.12))
    base = alt.Chart(ours).encode(
        x=alt.X(f"{x}:Q", title=x_title or axes.title(x), scale=x_scale, axis=axes.axis(x_scale)),
        y=alt.Y(f"{y}:Q", title=y_title or axes.title(y), scale=y_scale, axis=axes.axis(y_scale)),
        color=colour,
        opacity=faded,
        tooltip=axes.tooltip(
            ours, **{series: None, x: x_title, y: y_title}, **axes.ends(low, high)
        ),
    )
    layers = [
        base.mark_line(),
        base.mark_point(size=45 if ours[x].n_unique() <= 30 else 14).encode(
            shape=alt.Shape(f"{series}:N", legend=None, scale=scale)
        ),
    ]
    if low and high and ours[low].count():
        pale = alt.when(chosen).then(alt.value(0.18)).otherwise(alt.value(0.03))
        band = alt.Chart(ours).encode(
            x=f"{x}:Q", y=f"{low}:Q", y2=high, opacity=pale,
            color=alt.Color(f"{series}:N", legend=None),
        )  # fmt: skip
        layers.insert(0, band.mark_area(opacity=0.18))
    if len(hollow):
        layers.append(base.mark_point(filled=False, strokeWidth=1.5).properties(data=hollow))
    if len(theirs):
        layers.append(parts.published(theirs, x, y, "_label", published_label))
    shared = [pl.col(x, y).cast(pl.Float64), named, "_label", "_theirs"]
    # A series without another point has its name at a hollow one.
    only_hollow = hollow.join(ours, on=series, how="anti").with_columns(
        named.alias("_label"), _theirs=pl.lit(False)
    )
    rows = pl.concat([frame.select(shared) for frame in (ours, theirs, only_hollow)])
    ends = parts.labels(rows, x, y, "_label", domain=domain, height=height, log_y=log_y)
    ends = ends.join(
        rows.unique("_label", keep="first", maintain_order=True).select(
            series, "_label", "_theirs"
        ),
        on="_label",
    )
    layers += parts.end_labels(ends.sort("label_px"), series, colour)
    layers[0] = layers[0].add_params(chosen)
    return alt.layer(*layers).properties(width=width, height=height)


def together(panels: list[alt.LayerChart], columns: int = 1) -> alt.VConcatChart | alt.ConcatChart:
    """Return charts of `lines` as one, in rows of `columns`: a click in any picks in all.

    Altair names the views that can be clicked, and its release 6.1 forgets those of the first.
    """
    views = {}
    for panel in panels:
        for chosen in panel.params:
            views.setdefault(chosen.name, []).extend(chosen.views)
    with warnings.catch_warnings():
        # Panels share a parameter on purpose, and the warning would name this file's path.
        warnings.filterwarnings("ignore", "Automatically deduplicated selection parameter")
        whole = alt.vconcat(*panels) if columns == 1 else alt.concat(*panels, columns=columns)
    for chosen in whole.params:
        chosen.views = views[chosen.name]
    return whole


def multiples(
    frame: pl.DataFrame,
    x: str,
    y: str,
    series: str,
    panel: str,
    *,
    low: str,
    high: str,
    order: list[str],
    x_title: str,
    y_title: str,
) -> alt.ConcatChart:
    """Return one small chart for each level of `panel`, with one legend and scales of their own.

    Curves by `series` with their intervals, in the colours of `order`. Three columns of this width
    fit a printed page with type of 7 pt.
    """
    present = [name for name in order if name in frame[series].unique().to_list()]
    legend = alt.Legend(title=None, orient="top", symbolType="stroke", symbolOpacity=1)
    colour = alt.Color(f"{series}:N", scale=alt.Scale(domain=present, range=[
        PALETTE[order.index(name) % len(PALETTE)] for name in present]), legend=legend)  # fmt: skip
    shown = {series: None, x: x_title, y: y_title} | axes.ends(low, high)
    charts = []
    for name in frame[panel].unique(maintain_order=True).to_list():
        mine = frame.filter(pl.col(panel) == name)
        domain = axes.domain([mine], [y, low, high], log=False)
        base = alt.Chart(mine, title=name).encode(
            x=alt.X(f"{x}:Q", title=x_title, axis=alt.Axis(tickCount=4)),
            y=alt.Y(f"{y}:Q", title=y_title, axis=alt.Axis(tickCount=4),
                    scale=alt.Scale(type="linear", nice=False, domain=domain)),
            color=colour, tooltip=axes.tooltip(mine, **shown),
        )  # fmt: skip
        layers = [base.mark_line(), base.mark_point(size=30)]
        if mine[low].count():
            layers.insert(0, base.mark_area(opacity=0.18).encode(y=f"{low}:Q", y2=high))
        charts.append(alt.layer(*layers).properties(width=145, height=115))
    return alt.concat(*charts, columns=3)


def dots(
    frame: pl.DataFrame,
    x: str,
    category: str,
    *,
    low: str | None = None,
    high: str | None = None,
    published: str | None = None,
    more: str | None = None,
    classes: str | None = None,
    x_title: str | None = None,
    log_x: bool = False,
    order: list[str] | None = None,
    width: int = 400,
) -> alt.LayerChart:
    """Return one row per category: the value as a dot, its interval as a bar.

    `published` names a column of the same frame holding the source's value (a hollow grey
    diamond; null where there is none). `more` names one of booleans: where true, an arrowhead
    right of the dot says that the value may be higher. `classes` names one of whole numbers that
    grow from row to row: a line parts them where they do. The category's name at the axis
    is its label. Where no value was measured there is no row.
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
    titles = {category: None, x: x_title} | axes.ends(low, high)
    titles |= {published: "the post's"} if published else {}
    titles |= {more: "at least"} if more else {}
    base = alt.Chart(frame).encode(x=axis, y=rows, tooltip=axes.tooltip(frame, **titles))
    layers = [base.mark_point(size=70)]
    if low and high and frame[low].count():
        bar = base.mark_bar(height=2).encode(x=f"{low}:Q", x2=high)
        layers.insert(0, bar)
    if more and frame[more].any():
        arrow = base.transform_filter(f"datum['{more}']").mark_point(
            shape="triangle-right", size=45, filled=True, xOffset=11
        )
        layers.append(arrow)
    if published:
        mark = base.mark_point(filled=False, shape="diamond", size=75, strokeWidth=1.5, color=GREY)
        layers.append(mark.encode(x=f"{published}:Q"))
    first = (
        frame.filter(pl.col(classes).is_first_distinct(), pl.col(classes) > 1) if classes else ()
    )
    if len(first):
        parting = alt.Chart(first.select(category)).mark_rule(yOffset=-_ROW / 2, color=GREY)
        layers.insert(0, parting.encode(y=rows))
    # A higher chart than 940 is set with type of less than 7 pt on a printed page.
    height = min(940, _ROW * max(1, frame[category].n_unique()))
    return alt.layer(*layers).properties(width=width, height=height)
