"""The charts of releases over the years: a small one for each system.

In: frames of `deathmatch.analysis.history`. Out: one chart, or None where there is nothing to show.
"""

import altair as alt
import polars as pl

from deathmatch.analysis import searched, verdict_words
from deathmatch.analysis.history import OWN_RUNTIME, main_line
from deathmatch.analysis.stats import Interval
from deathmatch.paper import theme

_COLUMNS = 3
# The diamond is a post's value, and a line hides the stroke. There is one shape fewer than colours,
# so that no two runtimes share both before every pair of a shape and a colour is used.
_SHAPES = [
    "circle", "square", "triangle-up", "cross", "triangle-down", "triangle-right",
]  # fmt: skip


def over_years(
    frame: pl.DataFrame, title: str, theirs: pl.DataFrame | None = None
) -> alt.ConcatChart | None:
    """Return by system a panel: the median over the year of release, with its interval.

    A colour and a shape are a runtime, so that a line changes both at a seam. All panels have one
    legend and one pair of axes. `frame` has the columns system, year, release, runtime, trials,
    median, low, high, and perhaps `outcome`, by which a median may be a lower bound: ≥ marks it.
    `theirs`, the posts' own values, has system, year, median. None without a value.
    """
    shown = frame.drop_nulls("median")
    if shown.is_empty():
        return None
    texts = [verdict_words.effect_text(Interval.from_row(row)) for row in shown.to_dicts()]
    shown = shown.with_columns(measured=pl.Series(texts))
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
    # Also those of a release without a value, so that two quantities have the same colours.
    runtimes = sorted(frame["runtime"].unique(maintain_order=True), key=OWN_RUNTIME.__eq__)
    tooltip = ["release", "runtime", "year", alt.Tooltip("measured", title=title)]
    keys = alt.Legend(title="runtime", orient="top", columns=4, symbolOpacity=1)
    panels = []
    for name in shown["system"].unique(maintain_order=True):
        releases = shown.filter(system=name)
        colour = alt.Color("runtime:N", legend=keys, scale=alt.Scale(domain=runtimes))
        shape = alt.Shape("runtime:N", legend=keys, scale=alt.Scale(domain=runtimes, range=_SHAPES))
        mine = alt.Chart(releases).encode(x=x)
        connected = alt.Chart(main_line(releases)).encode(x=x, y=y)
        of_posts = theirs.filter(system=name)
        layers = [
            connected.mark_line(color=theme.GREY, strokeWidth=1, strokeDash=[2, 2]),
            mine.mark_line().encode(y=y, color=colour),
            mine.mark_rule(strokeWidth=1.5).encode(y="low:Q", y2="high:Q", color=colour),
            mine.mark_point(size=60, opacity=1).encode(
                y=y, color=colour, shape=shape, tooltip=tooltip
            ),
        ]
        if "outcome" in releases.columns:
            bounds = alt.Chart(releases.filter(outcome=searched.AT_LEAST))
            layers.append(bounds.mark_text(text="≥", dy=-11).encode(x=x, y=y))
        if len(of_posts):
            diamonds = alt.Chart(of_posts).mark_point(
                filled=False, shape="diamond", color=theme.GREY, size=55, strokeWidth=1.5
            )
            layers.append(diamonds.encode(x=x, y=y))
        panels.append(alt.layer(*layers).properties(title=name, width=130, height=110))
    return alt.concat(*panels, columns=_COLUMNS)
