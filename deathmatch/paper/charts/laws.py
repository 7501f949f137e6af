"""The chart of Little's law: rate × mean time against what is known to be under way.

In: frames of `deathmatch.analysis.law_findings`. Out: a chart.
"""

import altair as alt
import polars as pl

from deathmatch.analysis.law_findings import OFF
from deathmatch.paper import theme


def little(products: pl.DataFrame) -> alt.LayerChart:
    """Return a dot for each row of `where`, `counted` and `ratio`, over a band of OFF about 1."""
    order = products["where"].unique(maintain_order=True).to_list()
    band = alt.Chart(pl.DataFrame({"low": [1 - OFF], "high": [1 + OFF]})).mark_rect(
        color=theme.GREY, opacity=0.2
    )
    exact = alt.Chart(pl.DataFrame({"one": [1.0]})).mark_rule(color=theme.GREY)
    y = alt.Scale(type="log", nice=False)
    dots = (
        alt.Chart(products)
        .mark_point(size=26, strokeWidth=1.2)
        .encode(
            x=alt.X(
                "counted:Q", scale=alt.Scale(type="log"), title="requests or connections under way"
            ),
            y=alt.Y("ratio:Q", scale=y, title="rate × mean time ÷ under way"),
            color=alt.Color(
                "where:N", title=None, sort=order,
                legend=alt.Legend(columns=1, labelLimit=420),
                scale=alt.Scale(domain=order, range=theme.PALETTE[: len(order)]),
            ),
            shape=alt.Shape("where:N", sort=order, title=None, legend=None),
            tooltip=theme.axes.tooltip(
                products, where="of", counted="under way", ratio="rate × mean time ÷ under way"
            ),
        )
    )  # fmt: skip
    layers = [band.encode(y="low:Q", y2="high:Q"), exact.encode(y="one:Q"), dots]
    return alt.layer(*layers).properties(width=430, height=260)
