"""The charts and the long table on ten thousand WebSockets.

In: frames of `deathmatch.analysis.c10k`. Out: charts.
"""

import altair as alt
import polars as pl

from deathmatch.analysis.c10k import ENVIRONMENT_TITLES, PUBLISHED_ENVIRONMENT, QUANTILES
from deathmatch.paper import theme
from deathmatch.quantities.definitions import CPU_PER_REPLY, MEMORY_PER_CONNECTION


def quantiles(ours: pl.DataFrame, theirs: pl.DataFrame, begin: str) -> alt.VConcatChart:
    """Return a panel for each environment: boxes of `time_quantiles`, the post's as diamonds.

    `theirs` is as `published_rows` returns it, `begin` how its columns of the quantity begin.
    """
    post = [pl.col(f"{begin}_{name}_us") / 1e3 for name in ("p50", "p95", "p99")]
    published = theirs.select("system", "environment", *post).unpivot(
        index=["system", "environment"], value_name="value_ms"
    )
    low, high = _domain(ours, published)
    panels = []
    for environment, title in ENVIRONMENT_TITLES.items():
        rows = ours.filter(pl.col("environment") == environment)
        if len(rows):
            theirs_here = published.filter(
                pl.col("environment") == PUBLISHED_ENVIRONMENT[environment]
            )
            panel = _boxes(rows, theirs_here, low, high, f"{begin.replace('_', ' ')} (ms)")
            panels.append(panel.properties(width=430, height=17 * len(rows), title=title))
    return alt.vconcat(*panels)


def _domain(ours: pl.DataFrame, published: pl.DataFrame) -> tuple[float, float]:
    """Return the ends of the axis that all panels share, in ms."""
    known = [column for name in QUANTILES if len(column := ours[name].drop_nulls())]
    environments = [PUBLISHED_ENVIRONMENT[name] for name in ours["environment"].unique()]
    drawn = published.filter(
        pl.col("system").is_in(ours["post"].drop_nulls().implode()),
        pl.col("environment").is_in(environments),
    )["value_ms"]
    low = min(column.min() for column in known) * 0.8
    return low, max([*(column.max() for column in known), drawn.max() or 0]) * 1.4


def _boxes(
    rows: pl.DataFrame, published: pl.DataFrame, low: float, high: float, x_title: str
) -> alt.LayerChart:
    ticks = [tick for k in range(-3, 7) for tick in (10.0**k,) if low <= tick <= high]
    x = {
        "scale": alt.Scale(type="log", domain=[low, high], nice=False),
        "axis": alt.Axis(values=ticks, format=",~r"),
        "title": x_title,
    }
    order = rows["label"].to_list()
    y = alt.Y("label:N", sort=order, title=None, axis=alt.Axis(labelLimit=240, grid=True))
    edge = rows.with_columns(pl.col(name).fill_null(high).alias(name) for name in QUANTILES)
    titles = {name: f"{100 * share:g}th percentile (ms)" for name, share in QUANTILES.items()}
    base = alt.Chart(edge).encode(y=y, tooltip=theme.axes.tooltip(edge, label=None, **titles))
    dark, light = (
        alt.when("datum.limited").then(alt.value(grey)).otherwise(alt.value(colour))
        for grey, colour in (("#999999", theme.PALETTE[0]), ("#D5D5D5", theme.PALETTE[5]))
    )
    layers = [
        base.mark_rule().encode(x=alt.X("p01:Q", **x), x2="p99", color=dark),
        base.mark_bar(height=9).encode(x="p25:Q", x2="p75", color=light),
        base.mark_tick(thickness=2.5, height=13).encode(x="p50:Q", color=dark),
        base.mark_tick(thickness=1, height=8).encode(x="p999:Q", color=dark),
    ]
    beyond = rows.filter(pl.col("p99").is_null()).select("label", x_ms=pl.lit(high))
    if len(beyond):
        arrow = alt.Chart(beyond).mark_point(
            shape="triangle-right", size=70, color=theme.PALETTE[1], opacity=1
        )
        layers.append(arrow.encode(x="x_ms:Q", y=y))
    marks = rows.join(published, left_on="post", right_on="system")
    if len(marks):
        diamond = alt.Chart(marks.select("label", "value_ms")).mark_point(
            filled=False, shape="diamond", size=50, strokeWidth=1.3, color=theme.GREY
        )
        layers.append(diamond.encode(x="value_ms:Q", y=y))
    return alt.layer(*layers)


def connection_costs(costs: pl.DataFrame) -> alt.HConcatChart:
    """Return the two panels of `connection_costs`, in the same order of servers."""
    order = costs["label"].to_list()
    panels = [
        theme.dots(
            costs, column, "label", low=f"low_{column}", high=f"high_{column}", x_title=title,
            order=order, width=160,
        )
        for column, title in (
            ("memory_kib", MEMORY_PER_CONNECTION.heading),
            ("cpu_us", CPU_PER_REPLY.heading),
        )
    ]  # fmt: skip
    return alt.hconcat(*panels)
