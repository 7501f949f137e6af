"""Errors, times and variants of the experiment dynamic.

In: points and times of the experiment. Out: frames for its tables.
"""

import polars as pl

from deathmatch.analysis import reply_rates, stats
from deathmatch.analysis.by_trial import medians, values
from deathmatch.analysis.reply_rates import RATE
from deathmatch.analysis.stats import NO_TRIAL
from deathmatch.quantities.definitions import (
    CONNECTION_TIME,
    LARGEST_RSS,
    REPLY_RATE_OVERLOAD,
    RESPONSE_TIME,
)
from deathmatch.quantities.quantity import TOP

ERRORS = {
    "errors_client_timeout": "5 s timeout",
    "errors_socket_timeout": "socket timeout",
    "errors_connection_refused": "refused",
    "errors_connection_reset": "reset",
}
WRONG_STATUS = {f"replies_{digit}xx": f"status {digit}xx" for digit in (1, 3, 4, 5)}


def failures(points: pl.DataFrame) -> pl.DataFrame:
    """Return the connections that failed and the requests answered wrongly, all trials together.

    Columns: label, the rate, error (one of ERRORS or WRONG_STATUS) and failed_percent, of the
    connections or of the requests; without those of none.
    """
    parts = []
    for classes, over in ((ERRORS, "connections"), (WRONG_STATUS, "requests")):
        index = ["label", RATE, over]
        counts = points.group_by("label", RATE, maintain_order=True).agg(
            pl.col(*classes, over).sum()
        )
        parts.append(
            counts.unpivot(index=index, variable_name="error", value_name="count")
            .filter(pl.col("count") > 0)
            .select(
                "label",
                RATE,
                error=pl.col("error").replace_strict(classes),
                failed_percent=100 * pl.col("count") / pl.col(over),
            )
        )
    return pl.concat(parts).sort("label", RATE, maintain_order=True)


def connection_times(points: pl.DataFrame, times: pl.DataFrame) -> pl.DataFrame:
    """Return connection times by label at one rate, the fastest first.

    Columns: label, trials, rss_mb, median_ms, mean_ms and response_ms, medians over trials, and
    p99_ms, all trials together, null where more than 1 % of connections were never answered.
    """
    table = medians(points, (LARGEST_RSS, CONNECTION_TIME, RESPONSE_TIME), ["label"]).join(
        points.group_by("label", maintain_order=True).agg(
            mean_ms=pl.col("connection_time_avg_us").median() / 1000
        ),
        on="label",
        maintain_order="left",
    )
    table = table.select(
        "label",
        "trials",
        "mean_ms",
        rss_mb=pl.col(LARGEST_RSS.name) / 1e6,
        median_ms=CONNECTION_TIME.name,
        response_ms=pl.col(RESPONSE_TIME.name) / 1000,
    ).select("label", "trials", "rss_mb", "median_ms", "mean_ms", "response_ms")
    attempted = points.group_by("label", maintain_order=True).agg(pl.col("connections").sum())
    totals = {(label,): connections for label, connections in attempted.rows()}
    p99 = stats.quantiles(times, ["label"], {"p99_us": 0.99}, totals)
    p99 = p99.select("label", p99_ms=pl.col("p99_us") / 1000)
    return table.sort("median_ms").join(p99, on="label", how="left", maintain_order="left")


def variant_ratios(points: pl.DataFrame) -> pl.DataFrame:
    """Return the reply rate in overload of each variant over that of the first of the same server.

    Columns: variant, against and those of `stats.INTERVAL`, paired by round; without an interval
    where either answered that rate in full, or was offered another. `points` are those that count.
    """
    in_full = reply_rates.in_overload(points, ["server", "label"]).filter("at_least")
    unlimited = set(in_full["label"])
    tops = dict(points.group_by("label", maintain_order=True).agg(pl.col(TOP).max()).iter_rows())
    rows = []
    for server in sorted(set(points["server"])):
        mine = points.filter(pl.col("server") == server)
        first, *others = mine["label"].unique().sort()
        rates, name = values(mine, REPLY_RATE_OVERLOAD, ["label"]), REPLY_RATE_OVERLOAD.name
        for label in others:
            ratio = stats.ratio(rates, pl.col("label") == label, pl.col("label") == first, name)
            unknown = {label, first} & unlimited or tops[label] != tops[first]
            rows.append({"variant": label, "against": first} | (NO_TRIAL if unknown else ratio).row)
    names = {"variant": pl.String, "against": pl.String}
    return pl.DataFrame(rows, schema=names | stats.INTERVAL)
