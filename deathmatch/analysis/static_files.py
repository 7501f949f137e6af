"""What a small static file costs a server and its machine: the experiment static.

In: points and samples of the experiment. Out: costs for each reply, shares of CPU time by mode,
and rates of the machine's counters.
"""

import polars as pl

from deathmatch.analysis import stats
from deathmatch.analysis.reply_rates import RATE
from deathmatch.data import laws

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


def per_reply(points: pl.DataFrame) -> pl.DataFrame:
    """Return the points with replies, with cpu_us, switches and interrupts_each of one reply."""
    return points.filter(pl.col("replies") > 0).with_columns(
        cpu_us=pl.col("server_cpu_ns") / pl.col("replies") / 1000,
        switches=pl.col("context_switches") / pl.col("replies"),
        interrupts_each=pl.col("interrupts") / pl.col("replies"),
    )


def cpu_ratio(usage: pl.DataFrame, above: str, below: str) -> dict:
    """Return the interval of the ratio of two labels' CPU for a reply, paired by round.

    Each trial counts with its median over the rates of `per_reply`.
    """
    typical = usage.group_by("label", "n", maintain_order=True).agg(pl.col("cpu_us").median())
    label = pl.col("label")
    return stats.ratio(typical, label == above, label == below, "cpu_us")


def costs(usage: pl.DataFrame) -> pl.DataFrame:
    """Return the medians of `per_reply` over rates and trials: a row a label, the cheapest first.

    Columns: label, trials, cpu_us, switches, interrupts_each, rss_mb (the largest resident set).
    """
    found = usage.group_by("label", maintain_order=True).agg(
        pl.col("n").n_unique().cast(pl.Int64).alias("trials"),
        pl.col("cpu_us", "switches", "interrupts_each").median(),
        (pl.col("server_rss_bytes_max").max() / 1e6).alias("rss_mb"),
    )
    return found.sort("cpu_us")


def with_modes(points: pl.DataFrame) -> pl.DataFrame:
    """Return the points whose modes were counted, with the share in % of each of MODES.

    Of the CPUs that the server may use. Where the modes do not add up, by LAW-CPU-MODES, they are
    not read.
    """
    readable = laws.readable(points, "server_cpus_")
    return readable.filter(_COUNTED_US > 0).with_columns(
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


def busy_s(points: pl.DataFrame) -> tuple[float, float]:
    """Return seconds of CPU, over all points: not idle by the clock tick, and of the server's own.

    Of points as `with_modes` returns them.
    """
    ticks_us = points.select(_COUNTED_US.sum() - pl.col("server_cpus_idle_us").sum()).item()
    return ticks_us / 1e6, points["server_cpu_ns"].sum() / 1e9


def machine_rates(points: pl.DataFrame, samples: pl.DataFrame) -> pl.DataFrame:
    """Return the points with context_switches and interrupts of the whole machine for each second.

    Over the time from the first to the last sample of a rate; without points that have no two.
    """
    key = ["server", "variant", "n", RATE]
    window = (pl.col("time_us").max() - pl.col("time_us").min()) / 1e6
    windows = samples.drop_nulls(RATE).group_by(key, maintain_order=True).agg(window_s=window)
    found = points.join(windows, on=key).filter(pl.col("window_s") > 0)
    return found.with_columns(pl.col("context_switches", "interrupts") / pl.col("window_s"))
