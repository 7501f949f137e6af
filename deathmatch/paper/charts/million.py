"""The charts of many connections: what one costs the kernel, and what a million ask for.

In: frames of `deathmatch.analysis.connection_memory` and `million`. Out: charts.
"""

import altair as alt
import polars as pl

from deathmatch.analysis.connection_memory import PARTS, REST
from deathmatch.paper import theme


def by_state(parts: pl.DataFrame, totals: pl.DataFrame, order: list[str]) -> alt.LayerChart:
    """Return a bar for each state: `by_part` stacked, with the whole of `by_state` at its end."""
    known = [*PARTS, REST]
    place = pl.col("part").replace_strict({name: n for n, name in enumerate(known)}, default=9)
    y = alt.Y("state:N", sort=order, title=None, axis=alt.Axis(labelLimit=240))
    shown = [name for name in known if name in parts["part"].unique().to_list()]
    bars = (
        alt.Chart(parts.with_columns(place=place))
        .mark_bar(height=16)
        .encode(
            y=y,
            x=alt.X("bytes:Q", stack=True, title="bytes of kernel memory per connection"),
            color=alt.Color(
                "part:N", title=None, legend=alt.Legend(columns=3),
                scale=alt.Scale(domain=shown, range=theme.PALETTE[: len(shown)]),
            ),
            order="place:Q",
            tooltip=["state", "part", alt.Tooltip("bytes:Q", format=",.0f")],
        )
    )  # fmt: skip
    ends = alt.Chart(totals).encode(y=y, x="median:Q")
    text = ends.mark_text(align="left", dx=5).encode(text=alt.Text("median:Q", format=",.0f"))
    return (bars + text).properties(width=430, height=24 * max(1, len(totals)))
