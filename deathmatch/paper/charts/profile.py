"""The charts of where a request's CPU time goes: bars by phase, and flame graphs.

In: frames of `deathmatch.analysis.profile`. Out: charts.
"""

import altair as alt
import polars as pl

from deathmatch.analysis import phrases
from deathmatch.instruments.call_chains import PHASES
from deathmatch.paper import theme
from deathmatch.quantities.definitions import CPU_PER_REPLY

# The width of a letter, at a size that is legible in print.
LETTER_PERCENT = 1.28
ROW_PX = 15


def phases(bars: pl.DataFrame, order: list[str]) -> alt.ConcatChart:
    """Return a panel for each number of idle connections and rate, with one bar a mechanism.

    Panels have scales of their own.
    """
    legend = alt.Legend(title=None, orient="top", columns=4, symbolType="square")
    scale = alt.Scale(domain=list(PHASES), range=theme.PALETTE[: len(PHASES)])
    rows = bars.with_columns(
        pl.col("phase").cast(pl.String), place=pl.col("phase").to_physical().cast(pl.Int64)
    )
    panels = []
    for idle, rate_rps in bars.select("idle", "rate_rps").unique(maintain_order=True).rows():
        mine = rows.filter(idle=idle, rate_rps=rate_rps)
        title = f"{phrases.number(idle)} idle, {phrases.number(rate_rps)} req/s"
        panels.append(
            alt.Chart(mine, title=title, width=190, height=74)
            .mark_bar()
            .encode(
                x=alt.X("median:Q", title=CPU_PER_REPLY.heading, axis=alt.Axis(tickCount=4)),
                y=alt.Y("mechanism:N", title=None, sort=order, scale=alt.Scale(domain=order)),
                color=alt.Color("phase:N", scale=scale, legend=legend),
                order="place:Q",
                tooltip=["mechanism", "phase", "trials", "median", "low", "high"],
            )
        )
    return alt.concat(*panels, columns=2).resolve_scale(x="independent")


def flame(rectangles: pl.DataFrame, title: str) -> alt.LayerChart:
    """Return the call chains: what a function called is above it, as wide as its samples."""
    deepest = rectangles["depth"].max() or 0
    height = ROW_PX * (deepest + 1)
    wide = pl.col("to_percent") - pl.col("from_percent")
    drawn = rectangles.with_columns(
        upper=pl.col("depth") + 1, middle=(pl.col("from_percent") + pl.col("to_percent")) / 2,
        row=pl.col("depth") + 0.5, percent=wide,
        letters=(wide / LETTER_PERCENT).floor().cast(pl.Int64),
    ).with_columns(
        name=pl.when(pl.col("letters") >= pl.col("function").str.len_chars())
        .then("function")
        .when(pl.col("letters") > 4)
        .then(pl.col("function").str.slice(0, pl.col("letters").clip(1) - 1) + "…")
        .otherwise(pl.lit(""))
    )  # fmt: skip
    x = alt.X("from_percent:Q", title="share of the samples (%)",
              scale=alt.Scale(domain=[0, 100]))  # fmt: skip
    y_scale = alt.Scale(domain=[0, deepest + 1], nice=False)
    boxes = (
        alt.Chart(drawn)
        .mark_rect(stroke="white", strokeWidth=0.6, fillOpacity=0.75)
        .encode(
            x=x, x2="to_percent:Q",
            y=alt.Y("depth:Q", title="depth of the call", scale=y_scale, axis=None), y2="upper:Q",
            color=alt.Color("depth:O", legend=None, scale=alt.Scale(range=FLAMES)),
            tooltip=["function", alt.Tooltip("percent:Q", format=".1f")],
        )
    )  # fmt: skip
    names = (
        alt.Chart(drawn)
        .mark_text(fontSize=10, baseline="middle")
        .encode(x=alt.X("middle:Q"), y=alt.Y("row:Q", scale=y_scale), text="name:N")
    )
    return alt.layer(boxes, names).properties(title=title, width=490, height=height)


# Only neighbours must differ.
FLAMES = ["#E69F00", "#F0C66B"]
