"""What a small static file costs a server and its machine: the experiment static.

In: points and samples of the experiment. Out: costs for each reply, shares of CPU time by mode,
and rates of the machine's counters.
"""

import polars as pl

from deathmatch.analysis import stats
from deathmatch.analysis.by_trial import at_shared_rates, medians, values
from deathmatch.analysis.reply_rates import RATE
from deathmatch.analysis.stats import Interval
from deathmatch.quantities.definitions import (
    CPU_PER_REPLY,
    INTERRUPTS_PER_REPLY,
    LARGEST_RSS,
    SWITCHES_PER_REPLY,
)

# The modes of a figure -> the kernel's.
MODES = {
    "user": ["user", "nice"],
    "system": ["system"],
    "interrupts": ["irq", "softirq"],
    "waiting": ["iowait", "steal"],
    "idle": ["idle"],
}
BUSY = list(MODES)[:-1]
_COUNTED_US = pl.sum_horizontal(
    f"server_cpus_{mode}_us" for modes in MODES.values() for mode in modes
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


def with_modes(points: pl.DataFrame) -> pl.DataFrame:
    """Return the points whose modes were counted, with the share in % of each of MODES.

    Of the CPUs that the server may use, and of what the kernel counted there.
    """
    return points.filter(_COUNTED_US > 0).with_columns(
        (100 * pl.sum_horizontal(f"server_cpus_{mode}_us" for mode in modes) / _COUNTED_US).alias(
            name
        )
        for name, modes in MODES.items()
    )


def by_mode(points: pl.DataFrame) -> pl.DataFrame:
    """Return the median share of each busy mode: label, the rate, mode, share (%), order.

    Of points as `with_modes` returns them; `order` is the mode's place in MODES.
    """
    order = pl.col("mode").replace_strict({mode: place for place, mode in enumerate(MODES)})
    return (
        points.unpivot(BUSY, index=["label", RATE], variable_name="mode", value_name="share")
        .group_by("label", RATE, "mode", maintain_order=True)
        .agg(pl.col("share").median())
        .with_columns(order=order)
        .sort("label", RATE, "order")
    )


def machine_rates(points: pl.DataFrame, samples: pl.DataFrame) -> pl.DataFrame:
    """Return the points with context_switches and interrupts of the whole machine for each second.

    Over the time from the first to the last sample of a rate; without points that have no two.
    """
    key = ["server", "variant", "n", RATE]
    window = (pl.col("time_us").max() - pl.col("time_us").min()) / 1e6
    windows = samples.drop_nulls(RATE).group_by(key, maintain_order=True).agg(window_s=window)
    rates = points.join(windows, on=key).filter(pl.col("window_s") > 0)
    return rates.with_columns(pl.col("context_switches", "interrupts") / pl.col("window_s"))
