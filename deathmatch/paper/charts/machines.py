"""The chart of ratios on two machines.

In: the frame of `deathmatch.analysis.agreement.effects`. Out: a chart.
"""

import altair as alt
import polars as pl

from deathmatch.analysis.agreement import KINDS
from deathmatch.paper import theme

_SIZE = 330
_COLOURS = dict(zip(KINDS, [theme.PALETTE[1], theme.PALETTE[4], theme.PALETTE[0], theme.GREY]))


def effects(ratios: pl.DataFrame, dataset: str, other: str) -> alt.LayerChart:
    """Return each ratio of one dataset against that of another, with both intervals.

    Both axes are logarithmic. On the diagonal two machines tell the same.
    """
    span = pl.concat(
        [ratios[f"{side}{name}"] for side in ("", "other_") for name in ("low", "high")]
    )
    domain = [span.min() or 1, span.max() or 1]
    axis = {
        "scale": alt.Scale(type="log", nice=False, domain=domain),
        "axis": alt.Axis(values=[10.0**power for power in range(-4, 5)], format="~r", grid=True),
    }
    x = alt.X("other_effect:Q", title=f"ratio in {other}", **axis)
    y = alt.Y("effect:Q", title=f"ratio in {dataset}", **axis)
    shown = [kind for kind in KINDS if kind in ratios["kind"]]
    colours = alt.Scale(domain=shown, range=[_COLOURS[kind] for kind in shown])
    numbers = [alt.Tooltip(name, format=".3g") for name in ("effect", "other_effect")]
    base = alt.Chart(ratios).encode(
        x=x, y=y,
        color=alt.Color("kind:N", title="verdicts", sort=shown, scale=colours),
        tooltip=["says", "when", "kind", *numbers],
    )  # fmt: skip
    shape = alt.Shape("kind:N", title="verdicts", sort=shown, scale=alt.Scale(domain=shown))
    faint = base.mark_rule(strokeWidth=1, opacity=0.45)
    same = alt.Chart(pl.DataFrame({"effect": domain, "other_effect": domain}))
    return alt.layer(
        same.mark_line(color=theme.GREY, strokeDash=[5, 4], strokeWidth=1.5).encode(x=x, y=y),
        faint.encode(x="other_low:Q", x2="other_high:Q"),
        faint.encode(y="low:Q", y2="high:Q"),
        base.mark_point(size=60).encode(shape=shape),
    ).properties(width=_SIZE, height=_SIZE)
