"""The three small charts of what was found: listen backlog, readiness, WebSockets.

In: points of their experiments, and of `deathmatch.analysis.c10k`. Out: one chart each, or None
where there is nothing to show.
"""

import altair as alt
import polars as pl

from deathmatch.analysis import by_trial, listen_backlog, reply_rates, stats
from deathmatch.analysis.readiness import IDLE
from deathmatch.analysis.reply_rates import RATE, REPLY
from deathmatch.paper import theme
from deathmatch.quantities.definitions import CPU_PER_REPLY

_MECHANISMS = ["select", "poll", "epoll"]


def backlog(points: pl.DataFrame) -> alt.LayerChart | None:
    """Return replies a second of Yucan on one scheduler by its backlog, at the highest rate.

    That is the highest at which all backlogs have points that count.
    """
    mine = points.filter(server="yucan", schedulers="one", somaxconn=4096)
    mine = mine.filter(reply_rates.at_rate(listen_backlog.top_rate(mine)))
    if mine.is_empty():
        return None
    mine = by_trial.shared_rounds(mine, ["backlog"])
    summary = stats.summarise(mine, ["backlog"], REPLY).sort("backlog")
    y = alt.Scale(domain=[0, 1.05 * mine[RATE].max()], nice=False)
    axis = alt.Axis(labelAngle=0, labelOverlap=False)
    base = alt.Chart(summary, title="Replies by listen backlog").encode(
        x=alt.X("backlog:O", title="listen backlog", axis=axis)
    )
    interval = base.mark_rule(strokeWidth=2).encode(
        y=alt.Y("low:Q", scale=y, title="replies (1/s)"), y2="high:Q"
    )
    median = base.mark_point(size=60).encode(y=alt.Y("median:Q", scale=y))
    return (interval + median).properties(width=165, height=140)


def readiness(points: pl.DataFrame) -> alt.LayerChart | None:
    """Return CPU_PER_REPLY of the C server at the lowest open rate, by mechanism.

    `points` are those that count.
    """
    mine = points.filter(
        pl.col(RATE) > 0,
        pl.col("title") == "C",
        pl.col("readiness").is_in(_MECHANISMS),
        pl.col("replies") > 0,
    ).with_columns(cpu_us=CPU_PER_REPLY.of_trial.of_point())
    mine = mine.filter(pl.col(RATE) == mine[RATE].min())
    if mine.is_empty():
        return None
    mine = by_trial.shared_rounds(mine, ["readiness", IDLE])
    summary = stats.summarise(mine, ["readiness", IDLE], "cpu_us").sort("readiness", IDLE)
    base = alt.Chart(summary, title="CPU by idle connections").encode(
        x=alt.X(f"{IDLE}:Q", title="idle connections", axis=alt.Axis(tickCount=2)),
        color=alt.Color("readiness:N", legend=None, scale=alt.Scale(domain=_MECHANISMS)),
    )
    band = base.mark_area(opacity=0.18).encode(
        y=alt.Y("low:Q", title=CPU_PER_REPLY.heading), y2="high:Q"
    )
    line, dots = base.mark_line(), base.mark_point(size=35)
    curves = band + line.encode(y="median:Q") + dots.encode(y="median:Q")
    return (curves + _names(summary)).properties(width=135, height=140)


def _names(curves: pl.DataFrame) -> alt.LayerChart:
    """Return the mechanisms' names at the ends of their curves."""
    ends = curves.group_by("readiness", maintain_order=True).last()
    last = pl.col(IDLE) == curves[IDLE].max()
    return alt.layer(
        *(
            alt.Chart(ends.filter(which))
            .mark_text(align=side, dx=dx, dy=dy)
            .encode(x=f"{IDLE}:Q", y="median:Q", text="readiness")
            for which, side, dx, dy in ((last, "right", 6, -8), (~last, "left", 7, 4))
        )
    )


def websockets(both: pl.DataFrame) -> alt.LayerChart | None:
    """Return the first eight rows of `c10k.latency_with_published`, with shorter names."""
    label = pl.col("label").str.replace(", WebSocket", "").str.replace(", all CPUs", ", all")
    first = both.head(8).with_columns(label=label)
    if first.is_empty():
        return None
    return theme.dots(
        first, "p95_ms", "label", low="low", high="high", published="published_ms", log_x=True,
        x_title="95th percentile (ms)", width=130,
    ).properties(title="10 000 WebSockets, now and in 2012", height=140)  # fmt: skip


def together(panels: list[alt.LayerChart]) -> alt.ConcatChart:
    """Return the panels in one row."""
    return alt.concat(*panels, columns=3)
