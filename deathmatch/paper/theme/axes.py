"""The look that all charts share: colours, type and grid, and their axes."""

import altair as alt
import polars as pl

from deathmatch.analysis import phrases

# Okabe and Ito, Color Universal Design (2008), without yellow, which vanishes on paper, and
# with the strongest contrasts first.
PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#333333"]
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "stroke"]
GREY = "#6E6E6E"  # charts.js knows it: it takes another by night
# vl-convert carries Liberation Sans, so figures need no font of the machine. One weight only:
# with two fonts in a PDF it orders them at random, and the bytes would differ between builds.
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"


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
            # As `phrases.number` writes them.
            "locale": {"number": {"decimal": ".", "thousands": phrases.THIN, "grouping": [3],
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


UNITS = {
    "us": "µs", "ms": "ms", "s": "s", "ns": "ns", "rps": "req/s", "mps": "messages/s",
    "bytes": "bytes", "kib": "KiB", "mib": "MiB", "percent": "%", "hz": "Hz", "bps": "bit/s",
}  # fmt: skip


def title(column: str) -> str:
    """Return an axis title for a column named with its unit: `latency_us` → "latency (µs)"."""
    stem, _, unit = column.rpartition("_")
    if unit in UNITS and stem:
        return f"{stem.replace('_', ' ')} ({UNITS[unit]})"
    return column.replace("_", " ")


def measured(frame: pl.DataFrame, column: str) -> pl.DataFrame:
    """Return the frame as it is, or without a row where none has a value in the column."""
    return frame if frame[column].count() else frame.clear()


def axis(scale: alt.Scale) -> alt.Axis:
    """Return an axis; a logarithmic one has its ticks at powers of ten, or at 1, 2 and 5."""
    if scale.type != "log":
        return alt.Axis()
    low, high = scale.domain
    powers = [10.0**k for k in range(-9, 16)]
    ticks = [p for p in powers if low <= p <= high]
    if len(ticks) < 3:
        ticks = [p * step for p in powers for step in (1, 2, 5) if low <= p * step <= high]
    return alt.Axis(values=ticks, format=",~r")


def tooltip(frame: pl.DataFrame, **titles: str | None) -> list[alt.Tooltip]:
    """Return what pointing at a mark shows: columns of the frame, each under a title with its unit.

    Without a title it is the column's own. Numbers have four digits; charts.js leaves nulls out.
    """
    tips = []
    for column, heading in titles.items():
        kind = frame.schema[column]
        digits = {"format": ",.4~r" if kind.is_float() else ","} if kind.is_numeric() else {}
        name = f"{column}:{'Q' if kind.is_numeric() else 'N'}"
        tips.append(alt.Tooltip(name, title=heading or title(column), **digits))
    return tips


def ends(low: str | None, high: str | None) -> dict[str, str]:
    """Return the titles of the columns that have an interval's ends, for `tooltip`."""
    return {column: f"interval {end}" for column, end in ((low, "from"), (high, "to")) if column}


def domain(
    frames: list[pl.DataFrame],
    columns: list[str | None],
    log: bool,
    zero: bool = True,
    room: float = 1.06,
) -> tuple[float, float]:
    """Return the least and the greatest value of some columns, with room above the greatest.

    Default: from zero; a logarithmic one has room at both ends, and no zero.
    """
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
