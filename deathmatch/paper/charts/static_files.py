"""The chart of CPU time by mode.

In: frames of `deathmatch.analysis.static_files`. Out: a chart.
"""

import altair as alt
import polars as pl

from deathmatch.analysis.reply_rates import RATE
from deathmatch.analysis.static_files import BUSY

# Where the client was the limit at every point.
NO_POINT = "no point shows a server"


def by_mode(shares: pl.DataFrame, labels: list[str]) -> alt.ConcatChart:
    """Return a panel for each label, three in a row: `by_mode` stacked against the offered rate.

    An empty panel where there is no label.
    """
    panels = [_modes(shares.filter(pl.col("label") == label), label) for label in labels]
    return alt.concat(*(panels or [_modes(shares.clear(), NO_POINT)]), columns=3)


def _modes(shares: pl.DataFrame, title: str) -> alt.Chart:
    rates = alt.Axis(values=[10**power for power in range(1, 6)], format=",~r")
    return (
        alt.Chart(shares, title=title)
        .mark_area()
        .encode(
            x=alt.X(
                f"{RATE}:Q",
                title="offered rate (req/s)",
                scale=alt.Scale(type="log", nice=False),
                axis=rates,
            ),
            y=alt.Y("share:Q", title="of the CPU (%)", scale=alt.Scale(domain=[0, 100])),
            color=alt.Color("mode:N", scale=alt.Scale(domain=BUSY), title=None),
            order="order:Q",
            tooltip=["label", RATE, "mode", alt.Tooltip("share:Q", format=".1f")],
        )
        .properties(width=150, height=110)
    )
