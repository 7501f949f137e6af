"""The chart of where a request's CPU time goes: bars by phase.

In: frames of `deathmatch.analysis.profile`. Out: charts.
"""

import altair as alt
import polars as pl

from deathmatch.analysis import phrases
from deathmatch.instruments.call_chains import PHASES
from deathmatch.paper import theme
from deathmatch.quantities.definitions import CPU_PER_REPLY


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
                tooltip=theme.axes.tooltip(
                    mine,
                    mechanism=None,
                    phase=None,
                    trials="readings",
                    median=CPU_PER_REPLY.heading,
                    **theme.axes.ends("low", "high"),
                ),
            )
        )
    return alt.concat(*panels, columns=2).resolve_scale(x="independent")
