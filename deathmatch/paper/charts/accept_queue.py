"""The charts of the accept queue: connection times, outcomes.

In: frames of `deathmatch.analysis.accept_queue`. Out: charts.
"""

import altair as alt
import polars as pl

from deathmatch.analysis import accept_queue, accepting
from deathmatch.analysis.accepting import OUTCOMES
from deathmatch.paper import theme

LAST_S = 9
# Rarer bins, of 100 connections, are not drawn.
LEAST_PERCENT = 0.01
_BLUES = ["#C6DBEF", "#6BAED6", "#2171B5", "#08306B"]
_SYNS = ["first SYN", "2nd SYN", "3rd SYN", "4th SYN"]


def drawn(shares: pl.DataFrame) -> pl.DataFrame:
    """Return the bins of `time_shares` that a chart shows."""
    return shares.filter(pl.col("time_s") < LAST_S, pl.col("share_percent") >= LEAST_PERCENT)


def connection_times(shares: dict[str, pl.DataFrame]) -> alt.VConcatChart:
    """Return a panel for each variant: `time_shares` as bars, and when a client tries again."""
    named = [
        drawn(frame).select(pl.lit(name).alias("variant"), "time_s", "share_percent")
        for name, frame in shares.items()
    ]
    whole = pl.concat(named)
    return alt.vconcat(*(_times(whole.filter(variant=name), name) for name in shares))


def _times(shares: pl.DataFrame, name: str) -> alt.LayerChart:
    syns = pl.DataFrame({"time_s": accepting.SYN_S, "what": _SYNS})
    again = accept_queue.request_retries_s(LAST_S)
    scale = alt.Scale(domain=[-0.15, LAST_S], nice=False)
    x = alt.X("time_s:Q", title="connection time (s)", scale=scale)
    y = alt.Scale(type="log", domain=[LEAST_PERCENT, 1000], nice=False)
    axis = alt.Axis(values=[0.01, 0.1, 1, 10, 100])
    floor = alt.Y2Datum(LEAST_PERCENT)
    bars = (
        alt.Chart(shares)
        .mark_rule(strokeWidth=2.2, color=theme.PALETTE[0])
        .encode(
            x=x,
            y=alt.Y("share_percent:Q", scale=y, title="per 100 connections", axis=axis),
            y2=floor,
            tooltip=theme.axes.tooltip(
                shares, time_s="connection time (s)", share_percent="of 100"
            ),
        )
    )
    dotted = alt.Chart(again).mark_rule(strokeDash=[1, 3], color=theme.PALETTE[1])
    solid = alt.Chart(syns).mark_rule(color=theme.GREY).encode(x=x)
    text = alt.Chart(syns).mark_text(align="left", dx=4, baseline="top")
    return alt.layer(
        dotted.encode(x=x, y=alt.YDatum(100), y2=floor), solid, bars,
        text.encode(x=x, y=alt.value(2), text="what:N"),
    ).properties(width=520, height=130, title=name)  # fmt: skip


def outcomes(account: pl.DataFrame) -> alt.LayerChart:
    """Return one stacked bar for each variant of `account`."""
    return theme.stacks(
        account, "variant", "outcome", "share_percent", order=list(accept_queue.VARIANTS),
        colours=dict(zip(OUTCOMES, [*_BLUES, theme.PALETTE[1], "#333333"])),
        dark=[*OUTCOMES[2:4], "reset"], x_title="of 100 connections offered",
    )  # fmt: skip
