"""The charts of releases over the years: a small one for each system.

In: frames of `deathmatch.analysis.history`. Out: one chart, or None where there is nothing to show.
"""

import altair as alt
import polars as pl

from deathmatch.analysis.history import OWN_RUNTIME, main_line
from deathmatch.paper import theme

_COLUMNS = 3
# Without the diamond, which is a post's value, and the stroke, which a line hides.
_SHAPES = [
    "circle", "square", "triangle-up", "cross", "triangle-down", "triangle-right", "triangle-left",
]  # fmt: skip


def over_years(
    frame: pl.DataFrame, title: str, theirs: pl.DataFrame | None = None
) -> alt.ConcatChart | None:
    """Return the median over the year of release, with its interval.

    A colour and a shape are a runtime, so that a line changes both at a seam. All panels have one
    pair of axes. `frame` has the columns system, year, release, runtime, median, low, high;
    `theirs`, the posts' own values, system, year, median.
    """
    shown = frame.drop_nulls("median")
    if shown.is_empty():
        return None
    theirs = shown.select("system", "year", "median").clear() if theirs is None else theirs
    theirs = theirs.filter(pl.col("system").is_in(shown["system"].to_list()))
    years = pl.concat([shown["year"], theirs["year"]])
    x_scale = alt.Scale(domain=[years.min() - 1, years.max() + 1], nice=False)
    y_scale = alt.Scale(
        type="log", nice=False,
        domain=theme.axes.domain([shown, theirs], ["median", "low", "high"], log=True),
    )  # fmt: skip
    x = alt.X("year:Q", title="year of release", scale=x_scale,
              axis=alt.Axis(format="d", tickCount=4))  # fmt: skip
    y = alt.Y("median:Q", title=title, scale=y_scale, axis=theme.axes.axis(y_scale))
    runtimes = sorted(shown["runtime"].unique(maintain_order=True), key=OWN_RUNTIME.__eq__)
    legend = alt.Legend(title="runtime", orient="top", columns=4, symbolOpacity=1)
    colour = alt.Color("runtime:N", legend=legend, scale=alt.Scale(domain=runtimes))
    shape = alt.Shape("runtime:N", legend=legend, scale=alt.Scale(domain=runtimes, range=_SHAPES))
    panels = []
    for name in shown["system"].unique(maintain_order=True):
        releases = shown.filter(system=name)
        mine = alt.Chart(releases, title=name).encode(x=x)
        connected = alt.Chart(main_line(releases)).encode(x=x, y=y)
        of_posts = alt.Chart(theirs.filter(system=name)).encode(x=x, y=y)
        layers = [
            connected.mark_line(color=theme.GREY, strokeWidth=1, strokeDash=[2, 2]),
            mine.mark_line().encode(y=y, color=colour),
            mine.mark_rule(strokeWidth=1.5).encode(y="low:Q", y2="high:Q", color=colour),
            mine.mark_point(size=45).encode(
                y=y, color=colour, shape=shape,
                tooltip=["release", "runtime", "year", alt.Tooltip("median", format=".3g")],
            ),
            of_posts.mark_point(
                filled=False, shape="diamond", color=theme.GREY, size=55, strokeWidth=1.5
            ),
        ]  # fmt: skip
        panels.append(alt.layer(*layers).properties(width=150, height=115))
    return alt.concat(*panels, columns=_COLUMNS)
