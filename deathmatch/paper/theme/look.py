"""Colours, type and grid of every chart."""

import altair as alt

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
