"""The study's one look for charts, and the layers every question needs.

    theme.register()                                   # done by display.setup
    theme.lines(frame, "offered_rps", "reply_rps", "server", low="low_rps", high="high_rps",
                published=walkin)                      # curves, bands, end labels, hover, pick
    theme.dots(frame, "latency_us", "server", low="low_us", high="high_us")
    theme.interval(...), theme.published(...), theme.labels(...), theme.pick(...)   # the parts
    theme.title("latency_us")                          # "latency (µs)"

Every function takes a polars frame and returns an Altair chart; nothing is written or shown.
Column names end in their unit, and axis titles are made from them unless given.
"""

import warnings

import altair as alt
import numpy as np
import polars as pl
from scipy.optimize import isotonic_regression

# Okabe and Ito, Color Universal Design (2008), without yellow, which vanishes on paper, and
# with the strongest contrasts first.
PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#333333"]
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "stroke"]
GREY = "#6E6E6E"  # charts.js knows it: it takes another by night
# vl-convert carries Liberation Sans, so figures need no font of the machine. One weight only:
# with two fonts in a PDF it orders them at random, and the bytes would differ between builds.
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
UNITS = {
    "us": "µs", "ms": "ms", "s": "s", "ns": "ns", "rps": "req/s", "mps": "messages/s",
    "bytes": "bytes", "kib": "KiB", "mib": "MiB", "percent": "%", "hz": "Hz", "bps": "bit/s",
}  # fmt: skip


def register() -> None:
    """Make the study's theme Altair's current one."""
    alt.theme.register("deathmatch", enable=True)(config)


def config() -> alt.theme.ThemeConfig:
    """Return the theme: print-sized type of one weight, light grid, colour-blind-safe range."""
    text = {"labelFontSize": 12, "titleFontSize": 12.5, "titleFontWeight": "normal"}
    return {
        "width": 520,
        "height": 300,
        "config": {
            "font": FONT,
            # As `words.number` writes them.
            "locale": {"number": {"decimal": ".", "thousands": "\u202f", "grouping": [3],
                                  "currency": ["", ""]}},
            "background": "white",
            "view": {"stroke": None, "continuousWidth": 520, "continuousHeight": 300},
            "axis": {
                **text, "titlePadding": 8, "gridColor": "#E3E3E3", "domainColor": "#888888",
                "tickColor": "#888888", "labelColor": "#333333", "titleColor": "#333333",
                "labelOverlap": True,
            },
            "axisX": {"grid": False, "labelFlush": False, "tickCount": 6},
            "axisY": {"domain": False, "ticks": False, "tickCount": 6, "labelPadding": 8},
            "legend": {**text, "orient": "top", "labelLimit": 260, "labelColor": "#333333",
                       "titleColor": "#333333", "symbolStrokeWidth": 2},
            "header": {**text, "labelColor": "#333333", "titleColor": "#333333"},
            "title": {"fontSize": 13, "fontWeight": "normal", "anchor": "start",
                      "color": "#333333"},
            "range": {"category": PALETTE, "symbol": SHAPES},
            "mark": {"color": PALETTE[0]},
            "line": {"strokeWidth": 2},
            "point": {"size": 45, "filled": True},
            "text": {"fontSize": 12, "fontWeight": "normal", "color": "#333333"},
            "rule": {"color": GREY},
        },
    }  # fmt: skip


def title(column: str) -> str:
    """Return an axis title for a column named with its unit: `latency_us` → "latency (µs)"."""
    stem, _, unit = column.rpartition("_")
    if unit in UNITS and stem:
        return f"{stem.replace('_', ' ')} ({UNITS[unit]})"
    return column.replace("_", " ")


def pick(series: str) -> alt.Parameter:
    """Return a selection of series: a click on a label, point or legend entry isolates one."""
    return alt.selection_point(fields=[series], bind="legend", on="click", clear="dblclick")


def interval(
    frame: pl.DataFrame, x: str, low: str, high: str, series: str | None = None, kind: str = "band"
) -> alt.Chart:
    """Return the uncertainty of a curve: kind "band" (shaded) or "bar" (whiskers with ticks)."""
    base = alt.Chart(frame).encode(x=f"{x}:Q", y=f"{low}:Q")
    if series:
        base = base.encode(color=alt.Color(f"{series}:N", legend=None))
    if kind == "band":
        return base.mark_area(opacity=0.18).encode(y2=high)
    cap = base.mark_tick(orient="horizontal", size=7)
    return base.mark_rule(strokeWidth=1.5).encode(y2=high) + cap + cap.encode(y=f"{high}:Q")


def published(
    frame: pl.DataFrame, x: str, y: str, series: str | None = None, label: str = "published"
) -> alt.LayerChart:
    """Return a source's own values: hollow diamonds on a dashed grey line, named at its end.

    `series`, if given, separates the lines, and each end reads "<series>, <label>".
    """
    base = alt.Chart(frame).encode(
        x=f"{x}:Q", y=f"{y}:Q", tooltip=_tooltip([*([series] if series else []), x, y], label)
    )
    if series:
        base = base.encode(detail=f"{series}:N")
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
    x_title: str | None = None,
    y_title: str | None = None,
    log_x: bool = False,
    log_y: bool = False,
    width: int = 490,
    height: int = 300,
    order: list[str] | None = None,
) -> alt.LayerChart:
    """Return curves by series with their intervals, labelled at the right edge.

    `published` has the columns x, y and series, and is drawn beside what was measured, not alone.
    `order` fixes which series gets which colour, so that a server looks the same in every figure.
    Use at most seven series: colours repeat.
    """
    named = pl.col(series).cast(pl.String)
    ours = _measured(frame, y).with_columns(named.alias("_label"), _theirs=pl.lit(False))
    alone = published is None or ours.is_empty()
    theirs = (frame.clear() if alone else published).with_columns(
        (named + f", {published_label}").alias("_label"), _theirs=pl.lit(True)
    )
    domain = _domain([ours, theirs], [y, low, high], log_y)
    x_scale = alt.Scale(
        type="log" if log_x else "linear",
        domain=_domain([ours, theirs], [x], log_x, zero=False, room=1.0),
        nice=False,
    )
    y_scale = alt.Scale(type="log" if log_y else "linear", domain=domain, nice=False)
    scale = alt.Scale(domain=order or ours["_label"].unique(maintain_order=True).to_list())
    colour = alt.Color(f"{series}:N", legend=None, scale=scale)
    chosen = pick(series)
    faded = alt.when(chosen).then(alt.value(1)).otherwise(alt.value(0.12))
    base = alt.Chart(ours).encode(
        x=alt.X(f"{x}:Q", title=x_title or title(x), scale=x_scale, axis=_axis(x_scale)),
        y=alt.Y(f"{y}:Q", title=y_title or title(y), scale=y_scale, axis=_axis(y_scale)),
        color=colour,
        opacity=faded,
        tooltip=_tooltip([series, x, *(c for c in (y, low, high) if c)]),
    )
    layers = [
        base.mark_line(),
        base.mark_point(size=45 if ours[x].n_unique() <= 30 else 14).encode(
            shape=alt.Shape(f"{series}:N", legend=None, scale=scale)
        ),
    ]
    if low and high and ours[low].count():
        pale = alt.when(chosen).then(alt.value(0.18)).otherwise(alt.value(0.03))
        layers.insert(0, interval(ours, x, low, high, series).encode(opacity=pale))
    if len(theirs):
        layers.append(_published(theirs, x, y, "_label", published_label))
    shared = [pl.col(x, y).cast(pl.Float64), named, "_label", "_theirs"]
    rows = pl.concat([ours.select(shared), theirs.select(shared)])
    ends = labels(rows, x, y, "_label", domain=domain, height=height, log_y=log_y)
    ends = ends.join(
        rows.unique("_label", keep="first", maintain_order=True).select(
            series, "_label", "_theirs"
        ),
        on="_label",
    )
    layers += _end_labels(ends.sort("label_px"), series, colour)
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
        # That panels share a parameter is what is wanted, and the warning names this file's place.
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
    log_y: bool = False,
    columns: int = 3,
    width: int = 145,
    height: int = 115,
) -> alt.ConcatChart:
    """Return one small chart for each level of `panel`, with one legend and scales of their own.

    Curves by `series` with their intervals, in the colours of `order`. Three columns of the default
    width fit a printed page with type of 7 pt.
    """
    present = [name for name in order if name in frame[series].unique().to_list()]
    legend = alt.Legend(title=None, orient="top", symbolType="stroke", symbolOpacity=1)
    colour = alt.Color(f"{series}:N", scale=alt.Scale(domain=present, range=[
        PALETTE[order.index(name) % len(PALETTE)] for name in present]), legend=legend)  # fmt: skip
    charts = []
    for name in frame[panel].unique(maintain_order=True).to_list():
        mine = frame.filter(pl.col(panel) == name)
        values = [mine[column].drop_nulls() for column in (y, low, high)]
        scale = alt.Scale(type="log" if log_y else "linear", nice=False,
                          domain=_domain([mine], [y, low, high], log_y))  # fmt: skip
        base = alt.Chart(mine, title=name).encode(
            x=alt.X(f"{x}:Q", title=x_title, axis=alt.Axis(tickCount=4)),
            y=alt.Y(f"{y}:Q", title=y_title, scale=scale,
                    axis=_axis(scale) if log_y else alt.Axis(tickCount=4)),
            color=colour, tooltip=_tooltip([series, x, y, low, high]),
        )  # fmt: skip
        layers = [base.mark_line(), base.mark_point(size=30)]
        if len(values[1]):
            layers.insert(0, base.mark_area(opacity=0.18).encode(y=f"{low}:Q", y2=high))
        charts.append(alt.layer(*layers).properties(width=width, height=height))
    return alt.concat(*charts, columns=columns)


def _end_labels(ends: pl.DataFrame, series: str, colour: alt.Color) -> list[alt.Chart]:
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


_published = published


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
    beside the dot says that the value may be higher. The category's name beside the axis is its
    label. `colour` names a column whose levels stand below each other in a row. Where no value was
    measured there is no row.
    """
    frame = _measured(frame, x)
    scale = alt.Scale(type="log") if log_x else alt.Scale(zero=True)
    rows = alt.Y(
        f"{category}:N",
        title=None,
        sort=order or frame[category].unique(maintain_order=True).to_list(),
        axis=alt.Axis(labelLimit=310, grid=True),
    )
    axis = alt.X(f"{x}:Q", title=x_title or title(x), scale=scale)
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
    base = alt.Chart(frame).encode(x=axis, y=rows, tooltip=_tooltip(columns))
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


def _measured(frame: pl.DataFrame, column: str) -> pl.DataFrame:
    """Return the frame as it is, or without a row where none has a value in the column."""
    return frame if frame[column].count() else frame.clear()


def _axis(scale: alt.Scale) -> alt.Axis:
    """Return an axis; a logarithmic one has its ticks at powers of ten, or at 1, 2 and 5."""
    if scale.type != "log":
        return alt.Axis()
    low, high = scale.domain
    powers = [10.0**k for k in range(-9, 16)]
    ticks = [p for p in powers if low <= p <= high]
    if len(ticks) < 3:
        ticks = [p * step for p in powers for step in (1, 2, 5) if low <= p * step <= high]
    return alt.Axis(values=ticks, format=",~r")


def _tooltip(columns: list[str], note: str = "") -> list[alt.Tooltip]:
    first, *rest = columns
    suffix = f", {note}" if note else ""
    return [alt.Tooltip(first, title=title(first))] + [
        alt.Tooltip(c, title=title(c) + suffix) for c in rest
    ]


def _domain(
    frames: list[pl.DataFrame],
    columns: list[str | None],
    log: bool,
    zero: bool = True,
    room: float = 1.06,
) -> tuple[float, float]:
    present = [f[c].cast(pl.Float64) for f in frames for c in columns if c in f.columns]
    values = pl.concat(present).drop_nulls().drop_nans().to_numpy()
    if log:
        values = values[values > 0]
    if not len(values):
        return (1.0, 10.0) if log else (0.0, 1.0)
    low, high = float(values.min()), float(values.max())
    if log:
        return low / room**2, high * room**2
    if zero:
        low = min(0.0, low)
    return low, high * room if high > low else low + 1.0
