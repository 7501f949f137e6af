"""The charts of readiness mechanisms against idle connections, and of the crash on select.

In: points, and frames of `deathmatch.analysis.readiness`. Out: charts.
"""

import altair as alt
import polars as pl

from deathmatch.analysis import by_trial, readiness, stats
from deathmatch.analysis.readiness import IDLE, MECHANISMS
from deathmatch.analysis.reply_rates import RATE, REPLY
from deathmatch.paper import theme

# The rate at which Walkin's Tornado died.
PUBLISHED_CRASH_RPS = 6000
HEIGHT = 150


def by_idle(frame: pl.DataFrame, column: str, y_title: str) -> alt.Chart:
    """Return one panel a runtime, with one curve a mechanism, against the idle connections."""
    known = frame.filter(pl.col(column).is_not_null())
    group = ["title", "readiness", IDLE]
    curves = stats.summarise(by_trial.shared_rounds(known, group), group, column)
    return theme.multiples(
        curves.sort("title", "readiness", IDLE), IDLE, "median", "readiness", "title",
        low="low", high="high", order=MECHANISMS,
        x_title="idle connections", y_title=y_title,
    )  # fmt: skip


def crash(points: pl.DataFrame, valid: pl.DataFrame) -> alt.VConcatChart | alt.ConcatChart | None:
    """Return a panel for each runtime: reply rate against offered rate, and where it died.

    None where no runtime has a valid point.
    """
    deaths = readiness.deaths_by_rate(points)
    titles = valid["title"].unique().sort()
    if titles.is_empty():
        return None
    # Two side by side fit a printed page with type of 7 pt.
    columns, width = (1, 330) if len(titles) == 1 else (2, 190)
    panels = [
        _crash(valid.filter(title=title), deaths.filter(title=title), width).properties(title=title)
        for title in titles
    ]
    return theme.together(panels, columns)


def _crash(points: pl.DataFrame, deaths: pl.DataFrame, width: int) -> alt.LayerChart:
    x, y = "offered rate (req/s)", "reply rate (req/s)"
    shared = by_trial.shared_rounds(points, ["readiness"])
    curve = stats.summarise(shared, ["readiness", RATE], REPLY).sort("readiness", RATE)
    panel = theme.lines(
        curve, RATE, "median", "readiness", low="low", high="high", order=MECHANISMS,
        x_title=x, y_title=y, width=width, height=HEIGHT,
    )  # fmt: skip
    published = alt.Chart(pl.DataFrame({RATE: [PUBLISHED_CRASH_RPS]})).encode(
        x=alt.X(f"{RATE}:Q", title=x)
    )
    name = published.mark_text(
        text="Walkin’s died", align="left", dx=4, color=theme.GREY, fontSize=11
    )
    layers = [
        panel,
        published.mark_rule(strokeDash=[5, 4], color=theme.GREY),
        name.encode(y=alt.value(HEIGHT - 8)),
    ]
    if len(deaths):
        counted = deaths.drop("title").with_columns(
            text=pl.format("{} of {} died", "died", "trials")
        )
        marks = alt.Chart(counted).mark_text(dy=-11, fontSize=10)
        layers.append(
            marks.encode(x=alt.X(f"{RATE}:Q", title=x), y=alt.Y(f"{REPLY}:Q", title=y), text="text")
        )
    whole, *rest = layers
    return sum(rest, whole)
