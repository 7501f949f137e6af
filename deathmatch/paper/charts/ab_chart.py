"""The chart of `deathmatch compare`: B / A of each quantity, compared with A / A and B / B.

In: the frame of `deathmatch.analysis.ab_result`. Out: a chart.
"""

import altair as alt
import polars as pl

from deathmatch.analysis import ab_result
from deathmatch.paper import theme

# The comparisons, by the columns' prefix.
_KINDS = {"": "B / A", "aa_": "A / A", "bb_": "B / B"}


def chart(rows: pl.DataFrame, title: str) -> alt.LayerChart:
    """Return a row for each quantity and rate: three ratios with their intervals, and a line at 1.

    The axis is logarithmic: half and double are equally far from 1.
    """
    long = _long(rows)
    names = long["quantity"].unique(maintain_order=True).to_list()
    span = pl.concat([long["low"], long["high"], long["ratio"]]).drop_nulls()
    scale = alt.Scale(
        type="log", nice=False,
        domain=[min(0.9, 0.98 * (span.min() or 1)), max(1.1, 1.02 * (span.max() or 1))],
    )  # fmt: skip
    base = alt.Chart(long, title=title).encode(
        x=alt.X("ratio:Q", title="ratio (logarithmic)", scale=scale),
        y=alt.Y("quantity:N", title=None, sort=names, axis=alt.Axis(labelLimit=310)),
        yOffset=alt.YOffset("kind:N", sort=list(_KINDS.values())),
        color=alt.Color(
            "kind:N", title=None, sort=list(_KINDS.values()),
            scale=alt.Scale(domain=list(_KINDS.values()),
                            range=[theme.PALETTE[0], theme.GREY, theme.PALETTE[4]]),
        ),
        tooltip=["quantity", "kind", *(alt.Tooltip(name, format=".3f") for name in
                                       ("ratio", "low", "high"))],
    )  # fmt: skip
    bars = base.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q")
    dots = base.mark_point(size=55)
    equal = alt.Chart(pl.DataFrame({"one": [1.0]})).mark_rule(strokeDash=[4, 3]).encode(x="one:Q")
    return alt.layer(equal, bars, dots).properties(width=380, height=48 * max(1, len(names)))


def _long(rows: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each ratio: quantity, kind, ratio, low, high."""
    ratios = []
    for row in rows.iter_rows(named=True):
        for prefix, kind in _KINDS.items():
            values = {name: row[f"{prefix}{name}"] for name in ("ratio", "low", "high")}
            ratios.append({"quantity": ab_result.quantity(row), "kind": kind, **values})
    kinds = {"quantity": pl.String, "kind": pl.String} | dict.fromkeys(
        ("ratio", "low", "high"), pl.Float64
    )
    return pl.DataFrame(ratios, schema=kinds)
