"""The chart of what a WebSocket costs.

In: frames of `deathmatch.analysis.c10k`. Out: charts.
"""

import altair as alt
import polars as pl

from deathmatch.paper import theme
from deathmatch.quantities.definitions import CPU_PER_REPLY, MEMORY_PER_CONNECTION


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
