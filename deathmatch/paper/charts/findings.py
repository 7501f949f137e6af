"""The small charts of the findings: what the reference, the posts and a dataset show of each."""

import altair as alt
import polars as pl

from deathmatch.analysis.findings import REFERENCE, Result, Shown
from deathmatch.paper.theme import GREY, PALETTE, axes

_COLUMNS, _WIDTH, _ROW = 3, 185, 30
THEIRS = "posts"
_SCHEMA = {
    "what": pl.String, "of": pl.String, "value": pl.Float64, "low": pl.Float64, "high": pl.Float64,
}  # fmt: skip


def panels(results: list[Result], reference: list[Result]) -> alt.ConcatChart | None:
    """Return a panel for each finding that has a number, three in a row; None without any.

    A row for each comparison of the first one's quantity: the reference in grey, the dataset of
    `results` in colour unless it is the reference, the posts' value as a hollow diamond.
    """
    pairs = list(zip(results, reference, strict=True))
    charts = [
        _panel(_axis(mine.shown[0]), frame, place)
        for place, (mine, known) in enumerate(pairs, 1)
        if len(frame := rows(mine, known))
    ]
    if not charts:
        return None
    return alt.concat(*charts, columns=_COLUMNS, spacing={"row": 8, "column": 26}).resolve_scale(
        color="independent", y="independent", yOffset="independent"
    )


def rows(mine: Result, reference: Result) -> pl.DataFrame:
    """Return what a panel draws: what, of (a dataset, or the posts), value, low, high."""
    found = []
    for result in {one.dataset: one for one in (reference, mine)}.values():
        name = REFERENCE if result is reference else result.dataset
        for one in result.shown:
            if one.number and _axis(one) == _axis(result.shown[0]):
                known = one.interval
                found.append((one.what, name, known.estimate, known.low, known.high))
    if found and mine.finding.published is not None:
        found.append((found[0][0], THEIRS, mine.finding.published, None, None))
    return pl.DataFrame(found, schema=_SCHEMA, orient="row")


def _axis(one: Shown) -> str:
    quantity = one.comparison.quantity
    return f"ratio of {quantity.title}" if len(one.part.sides) == 2 else quantity.heading


def _panel(axis: str, frame: pl.DataFrame, place: int) -> alt.LayerChart:
    known = pl.concat([frame[name] for name in ("value", "low", "high")]).drop_nulls()
    low, high = known.min(), known.max()
    log = low > 0 and high / low > 8
    scale = alt.Scale(type="log", nice=True) if log else alt.Scale(domainMin=0, nice=True)
    whats = frame["what"].unique(maintain_order=True).to_list()
    datasets = [name for name in frame["of"].unique(maintain_order=True) if name != THEIRS]
    colours = [GREY if name == REFERENCE else PALETTE[1] for name in datasets]
    # A row begins with its name, so that no name takes a panel's width.
    y = alt.Y("what:N", title=None, sort=whats, axis=None, scale=alt.Scale(padding=0))
    labels = frame.select("what").unique(maintain_order=True)
    base = alt.Chart(frame.filter(pl.col("of") != THEIRS)).encode(
        y=y,
        x=alt.X("value:Q", title=axis, scale=scale,
                axis=alt.Axis(tickCount=3, format="~s" if high >= 10_000 else ",~r")),
        yOffset=alt.YOffset("of:N", sort=datasets, scale=alt.Scale(rangeMin=14, rangeMax=_ROW - 4)),
        color=alt.Color("of:N", legend=None, scale=alt.Scale(domain=datasets, range=colours)),
        tooltip=axes.tooltip(
            frame, what="compared", of="dataset", value=axis, **axes.ends("low", "high")
        ),
    )  # fmt: skip
    layers = [
        alt.Chart(labels).mark_text(align="left", baseline="top", dy=-_ROW / 2).encode(
            y=y, x=alt.value(0), text="what:N"
        ),
        base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=2).encode(
            x="low:Q", x2="high:Q"
        ),
        base.mark_point(size=45),
    ]  # fmt: skip
    theirs = frame.filter(of=THEIRS)
    if len(theirs):
        diamond = alt.Chart(theirs).mark_point(
            shape="diamond", filled=False, color=GREY, size=60, strokeWidth=1.5, yOffset=5
        )
        layers.append(
            diamond.encode(
                y=y, x="value:Q", tooltip=axes.tooltip(theirs, what="compared", value="the post's")
            )
        )
    return alt.layer(*layers).properties(
        width=_WIDTH, height=_ROW * len(whats), title=alt.Title(f"{place}", offset=4)
    )
