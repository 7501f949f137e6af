"""The chart of what limited the points of each experiment.

In: frames of `deathmatch.analysis.law_findings`. Out: a chart.
"""

import altair as alt
import polars as pl

from deathmatch.data import limits
from deathmatch.paper import theme

LIMITED_BY = {
    limits.NONE: "nothing", limits.SERVER: "the server", limits.TESTBED: "the testbed",
    limits.CLIENT: "the client", limits.OTHER: "other load", limits.UNKNOWN: "not known",
}  # fmt: skip
_COLOURS = ["#C6DBEF", "#2171B5", "#FDD0A2", "#D95F02", "#666666", "#DDDDDD"]


def limited(shares: pl.DataFrame) -> alt.LayerChart:
    """Return a bar for each experiment of `law_findings.limited`."""
    known = shares.with_columns(by=pl.col("limit").replace_strict(LIMITED_BY))
    there = known["by"].unique().to_list()
    colours = dict(zip(LIMITED_BY.values(), _COLOURS))
    return theme.stacks(
        known, "experiment", "by", "share_percent", order=sorted(known["experiment"].unique()),
        colours={name: colour for name, colour in colours.items() if name in there},
        dark=["the server", "the client", "other load"], x_title="of 100 points",
    )  # fmt: skip
