"""Where connections wait for `accept`, and for how long: the experiment accept-queue.

In: points, times and samples of the experiment. Out: frames for figures and tables, shares, ratios.
A connection's outcome and the kernel's drops are those of `accepting`.
"""

from collections.abc import Iterator

import numpy as np
import polars as pl

from deathmatch.analysis import accepting, reply_rates, stats
from deathmatch.analysis.reply_rates import RATE, REPLY
from deathmatch.analysis.stats import Interval
from deathmatch.data.laws.law import TRIAL
from deathmatch.load import histogram
from deathmatch.quantities.definitions import FAILED_CONNECTIONS

SERVER = "acceptors"
# The levels of the factors that a variant's name leaves out.
DEFAULTS = {"accept": "one", "backlog": 128, "somaxconn": 4096, "abort_on_overflow": 0,
            "syncookies": 1, "schedulers": "one"}  # fmt: skip
VARIANTS = {
    "backlog 5": {"backlog": 5},
    "backlog 128": {},
    "backlog 128, many": {"accept": "many"},
    "backlog 128, several": {"accept": "several"},
    "backlog 128, reuseport": {"accept": "reuseport"},
    "backlog 128, no cookies": {"syncookies": 0},
    "backlog 128, abort": {"abort_on_overflow": 1},
    "backlog 256": {"backlog": 256},
    "backlog 1024": {"backlog": 1024},
    "backlog 4096": {"backlog": 4096},
}
LOSSES = ["syns_syn_queue", "syns_accept_queue", "acks_accept_queue", "server_syncookies_sent",
          "retries_counted", "retries_implied"]  # fmt: skip
WAY_MEASURES = ["replies_rps", "quick_percent", "failed_percent", "median_ms", "held",
                "accept_queue"]  # fmt: skip
_NODE_WAYS = {"loop": "all that wait (20.2)", "single": "one (20.3)"}
# The ways of Node.js, before and after its change.
NODE = tuple(f"Node.js, {way}" for way in _NODE_WAYS.values())
_QUICK_US = 1_000_000


def at_levels(frame: pl.DataFrame, rate_rps: int, **levels: object) -> pl.DataFrame:
    """Return our C server's rows at a rate, at these levels and otherwise at DEFAULTS.

    None selects every level of a factor.
    """
    chosen = {name: level for name, level in (DEFAULTS | levels).items() if level is not None}
    return frame.filter(reply_rates.at_rate(rate_rps), server=SERVER, **chosen)


def of_trials(times: pl.DataFrame, points: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of `times` that belong to the trials in `points`."""
    return times.join(points, on=TRIAL, how="semi")


def capacity_rps(points: pl.DataFrame) -> float | None:
    """Return the requests that one CPU can answer a second: connections over their CPU time."""
    cpu_ns = points["server_cpu_ns"].sum()
    return 1e9 * points["server_passive_opens"].sum() / cpu_ns if cpu_ns else None


def time_shares(points: pl.DataFrame, times: pl.DataFrame, bin_ms: int) -> pl.DataFrame:
    """Return how many of 100 offered connections were answered in each bin of connection time.

    Columns: time_s, the start of the bin, and share_percent. Only trials in `points` count.
    """
    offered = points["connections"].sum()
    start_s = (pl.col("time_us") // (1000 * bin_ms)) * bin_ms / 1000
    bins = of_trials(times, points).group_by(time_s=start_s, maintain_order=True)
    return bins.agg(share_percent=100 * pl.col("count").sum() / offered)


def share_between(shares: pl.DataFrame, from_s: float, to_s: float) -> float:
    """Return how many of 100 connections `time_shares` has in bins from `from_s` up to `to_s`."""
    start_s = pl.col("time_s")
    return shares.filter(start_s >= from_s - 1e-9, start_s < to_s - 1e-9)["share_percent"].sum()


def request_retries_s(until_s: float) -> pl.DataFrame:
    """Return when a client sends a request again after each of its SYNs: time_s, from the first."""
    after = [syn + retry for syn in accepting.SYN_S for retry in accepting.REQUEST_RETRIES_S]
    return pl.DataFrame({"time_s": [at for at in after if at < until_s]})


def account(points: pl.DataFrame, times: pl.DataFrame, rate_rps: int) -> pl.DataFrame:
    """Return the outcomes of the connections of each of VARIANTS that ran, all trials together.

    Columns: those of `accepting.outcomes`, and variant.
    """
    return pl.concat(
        outcomes.with_columns(variant=pl.lit(name))
        for name, _, outcomes in _by_variant(points, times, rate_rps)
    )


def _by_variant(
    points: pl.DataFrame, times: pl.DataFrame, rate_rps: int
) -> Iterator[tuple[str, pl.DataFrame, pl.DataFrame]]:
    """Return the points of each of VARIANTS, and the outcomes of their connections."""
    for name, levels in VARIANTS.items():
        mine = at_levels(points, rate_rps, **levels)
        yield name, mine, accepting.outcomes(mine, of_trials(times, mine), ["server"])


def losses(points: pl.DataFrame, times: pl.DataFrame, rate_rps: int) -> pl.DataFrame:
    """Return the longest queues of each of VARIANTS that ran, and its LOSSES per 100 connections.

    Columns: variant, trials, accept_queue, syn_queue and LOSSES. `retries_counted` are the SYN
    retries of the client's kernel, `retries_implied` those that follow from the connection times;
    null where a client gave up.
    """
    rows = []
    for name, mine, outcomes in _by_variant(points, times, rate_rps):
        if mine.is_empty():
            continue
        per_100 = 100 / mine["connections"].sum()
        dropped = accepting.drops(mine).select(pl.col(LOSSES[:4]).sum() * per_100)
        implied = accepting.implied_retries(outcomes) * per_100
        rows.append({
            "variant": name,
            "trials": len(mine),
            "accept_queue": mine["accept_queue_connections_max"].max(),
            "syn_queue": mine["syn_queue_connections_max"].max(),
            **dropped.row(0, named=True),
            "retries_counted": mine["client_syn_retransmissions"].sum() * per_100,
            "retries_implied": None if mine["errors_total"].sum() else implied,
        })  # fmt: skip
    return pl.DataFrame(rows)


def chance_of_difference(runs: pl.DataFrame, share: float, runs_each: int, pairs: int) -> float:
    """Return how often two means of `runs_each` equal runs differ by `share` or more by chance.

    `runs` has single runs as `value`, several at each `offered_rate_rps`, taken relative to the
    mean at that rate; `pairs` of means are drawn from all of them, with a fixed seed.
    """
    relative = runs["value"] / runs.select(pl.col("value").mean().over(RATE)).to_series()
    draw = np.random.default_rng(stats.SEED)
    means = draw.choice(relative.to_numpy(), (pairs, 2, runs_each)).mean(axis=2)
    return float((means.min(axis=1) / means.max(axis=1) <= 1 - share).mean())


def ways_of_accepting(
    points: pl.DataFrame, times: pl.DataFrame, samples: pl.DataFrame, rate_rps: int
) -> pl.DataFrame:
    """Return the results of each trial of each way of accepting, at DEFAULTS except the CPUs.

    Columns: way (of the C server, and of Node.js before and after its change), schedulers, n, and
    WAY_MEASURES: replies in the offered time; of 100 connections, those answered within 1 s and
    those that failed; their median time, with failed ones as the slowest; and the most connections
    that server and accept queue held at a sample.
    """
    node = pl.format("Node.js, {}", pl.col("configuration").replace(_NODE_WAYS))
    way = pl.when(pl.col("server") == SERVER).then(pl.format("C, {}", "accept")).otherwise(node)
    levels = {name: DEFAULTS[name] for name in DEFAULTS if name not in ("accept", "schedulers")}
    failed = FAILED_CONNECTIONS.of_trial.of_point()
    chosen = points.filter(reply_rates.at_rate(rate_rps), **levels).with_columns(
        way=way, failed_percent=failed
    )
    at_rate = samples.filter(reply_rates.at_rate(rate_rps))
    held = at_rate.group_by(TRIAL, maintain_order=True).agg(
        held=(pl.col("server_established") - pl.col("accept_queue_connections")).max()
    )
    bins = times.filter(reply_rates.at_rate(rate_rps), pl.col("quantity") == "connection_time")
    rows = []
    for row in chosen.join(held, on=TRIAL).to_dicts():
        mine = bins.filter(**{name: row[name] for name in TRIAL})
        quick = mine.filter(pl.col("time_us") < _QUICK_US)["count"].sum()
        median_us = histogram.quantile_us(mine, 0.5, row["connections"])
        rows.append({
            "way": row["way"], "schedulers": row["schedulers"], "n": row["n"],
            "replies_rps": row[REPLY],
            "quick_percent": 100 * quick / row["connections"],
            "failed_percent": row["failed_percent"],
            "median_ms": median_us and median_us / 1000,
            "held": row["held"], "accept_queue": row["accept_queue_connections_max"],
        })  # fmt: skip
    kinds = {"way": pl.String, "schedulers": pl.String, "n": pl.Int64}
    kinds |= dict.fromkeys(WAY_MEASURES, pl.Float64)
    kinds |= dict.fromkeys(("held", "accept_queue"), pl.Int64)
    return pl.DataFrame(rows, schema=kinds)


def way_medians(trials: pl.DataFrame) -> pl.DataFrame:
    """Return way, schedulers, trials and the medians of WAY_MEASURES, of `ways_of_accepting`."""
    groups = trials.group_by("way", "schedulers", maintain_order=True)
    medians = groups.agg(pl.len().alias("trials"), pl.col(WAY_MEASURES).median())
    return medians.sort("way", "schedulers")


def way_ratio(trials: pl.DataFrame, above: str, below: str, measure: str) -> Interval:
    """Return the interval of a measure's ratio between two ways on one CPU, paired by round."""
    one_cpu = trials.filter(pl.col("schedulers") == "one")
    return stats.ratio(one_cpu, pl.col("way") == above, pl.col("way") == below, measure)
