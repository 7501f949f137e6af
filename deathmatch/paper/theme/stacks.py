"""Stacked bars of shares."""

from collections.abc import Collection, Mapping, Sequence

import altair as alt
import polars as pl

from deathmatch.paper.theme import axes

# Shares from here on have room for their number.
_LABELLED_PERCENT = 5


def stacks(
    frame: pl.DataFrame, category: str, part: str, share: str, *, order: Sequence[str],
    colours: Mapping[str, str], dark: Collection[str], x_title: str,
) -> alt.LayerChart:  # fmt: skip
    """Return one bar for each category, of its parts in the order of `colours`.

    `share` names a column of percents that sum up to 100; the numbers on the parts in `dark` are
    white.
    """
    places = {name: place for place, name in enumerate(colours)}
    percent = pl.col(share)
    stacked = (
        frame.sort(pl.col(part).replace_strict(places))
        .with_columns(
            end=percent.cum_sum().over(category),
            dark=pl.col(part).is_in([*dark]),
            text=pl.when(percent >= _LABELLED_PERCENT).then(
                percent.round(0).cast(pl.Int64).cast(pl.String)
            ),
        )
        .with_columns(start=pl.col("end") - percent, middle=pl.col("end") - percent / 2)
    )
    y = alt.Y(f"{category}:N", sort=list(order), title=None, axis=alt.Axis(labelLimit=240))
    base = alt.Chart(stacked).encode(y=y)
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    bars = base.mark_bar(height=14).encode(
        x=alt.X("start:Q", title=x_title, scale=alt.Scale(domain=[0, 100], nice=False)),
        x2="end:Q",
        color=alt.Color(f"{part}:N", scale=scale, title=None, legend=alt.Legend(columns=3)),
        tooltip=axes.tooltip(stacked, **{category: None, part: None, share: "of 100"}),
    )
    text = (
        base.transform_filter("datum.text != null")
        .mark_text()
        .encode(
            x="middle:Q",
            text="text:N",
            color=alt.condition("datum.dark", alt.value("white"), alt.value("black")),
        )
        .properties(name="inside")
    )
    return (bars + text).properties(width=440, height=18 * stacked[category].n_unique())
