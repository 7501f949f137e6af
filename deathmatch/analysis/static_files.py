"""What a small static file costs a server and its machine: the experiment static.

In: points and samples of the experiment. Out: costs for each reply, shares of CPU time by mode,
and rates of the machine's counters.
"""

import polars as pl

from deathmatch.analysis import stats
from deathmatch.analysis.by_trial import at_shared_rates, medians, values
from deathmatch.analysis.stats import Interval
from deathmatch.quantities.definitions import (
    CPU_PER_REPLY,
    INTERRUPTS_PER_REPLY,
    LARGEST_RSS,
    SWITCHES_PER_REPLY,
)

COSTS = (CPU_PER_REPLY, SWITCHES_PER_REPLY, INTERRUPTS_PER_REPLY)
"""What `costs` has for each reply."""


def cpu_ratio(points: pl.DataFrame, above: str, below: str) -> Interval:
    """Return the interval of the ratio of two labels' CPU per reply, paired by round.

    At the rates that both have in a round.
    """
    label = pl.col("label")
    sides = at_shared_rates([points.filter(label == name) for name in (above, below)])
    by_trial = values(pl.concat(sides), CPU_PER_REPLY, ["label"])
    return stats.ratio(by_trial, label == above, label == below, CPU_PER_REPLY.name)


def costs(points: pl.DataFrame) -> pl.DataFrame:
    """Return medians over trials of COSTS and of the largest resident set, the cheapest first.

    Columns: label, trials, the names of COSTS, rss_mb. `points` are those that count.
    """
    answered = points.filter(pl.col("replies") > 0)
    table = medians(answered, (*COSTS, LARGEST_RSS), ["label"])
    rss_mb = pl.col(LARGEST_RSS.name) / 1e6
    return table.with_columns(rss_mb=rss_mb).drop(LARGEST_RSS.name).sort(CPU_PER_REPLY.name)
