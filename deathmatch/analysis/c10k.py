"""Ten thousand WebSockets: latencies, memory and outcomes by server, with the post's own numbers.

In: the experiment's points, times and seconds, and the values of Moritz 2012. Out: frames for
`deathmatch.paper.charts.c10k` and tables.
"""

import polars as pl

from deathmatch.analysis import stats, views
from deathmatch.data import laws
from deathmatch.data.laws.law import KEY
from deathmatch.quantities.definitions import CPU_PER_REPLY, MEMORY_PER_CONNECTION

# Our server and its schedulers -> the post's row of the same software. "all" is every core.
PUBLISHED_SYSTEM = {
    ("erlang-cowboy", "all"): "erlang-cowboy",
    ("go-gonet", "all"): "go-gonet",
    ("pypy-tornado", "all"): "pypy-tornado-N",
    ("pypy-tornado", "one"): "pypy-tornado-1",
    ("tornado-ws", "all"): "python-tornado-N",
    ("tornado-ws", "one"): "python-tornado-1",
    ("pypy-txws", "all-and-one"): "pypy-twisted-N",
    ("pypy-txws", "one"): "pypy-twisted-1",
    ("txws", "all-and-one"): "python-twisted-N",
    ("txws", "one"): "python-twisted-1",
    ("pypy-txws-0.7", "all-and-one"): "pypy-twisted-N",
    ("pypy-txws-0.7", "one"): "pypy-twisted-1",
    ("txws-0.7", "all-and-one"): "python-twisted-N",
    ("txws-0.7", "one"): "python-twisted-1",
    ("gevent-websocket", "all"): "python-gevent-websocket-N",
    ("gevent-websocket", "all-and-one"): "python-gevent-websocket-N",
    ("gevent-websocket", "one"): "python-gevent-websocket-1",
    ("node-ws", "all"): "node-ws-cluster",
    ("node-ws", "one"): "node-ws",
    ("webbit", "all"): "java-webbit",
    ("play", "all"): "scala-play",
    ("snap-ws", "all"): "haskell-snap",
    ("perl-ev-ws", "one"): "perl-ev",
}
# The environment of the post that each of ours corresponds to.
PUBLISHED_ENVIRONMENT = {"unthrottled": "local", "ec2-like": "EC2"}
ENVIRONMENT_TITLES = {"unthrottled": "unthrottled", "ec2-like": "EC2-like"}
_PLACES = {"moritz2012-local": "local", "moritz2012-ec2": "EC2"}
_STATISTICS = {"mean": "mean", "stddev": "stddev", "median": "p50", "p95": "p95", "p99": "p99",
               "p99.9": "p999"}  # fmt: skip
QUANTILES = {"p01": 0.01, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p99": 0.99, "p999": 0.999}
_KEY = ["label", "server", "schedulers", "environment"]


def as_planned(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that most of the chapter shows: default opening, planned length."""
    return views.at_defaults(frame, "c10k", "opening", "run")


def published_rows(moritz: pl.DataFrame) -> pl.DataFrame:
    """Return the post's two tables: system, environment ("local" or "EC2"), connection_timeouts,
    and both quantities' statistics in us, named as the columns of `points`."""
    quantities = ("handshake_time", "message_latency", "connection_timeouts")
    known = moritz.filter(
        pl.col("testbed").is_in(list(_PLACES)),
        pl.col("quantity").is_in(quantities),
        pl.col("statistic").is_in([*_STATISTICS, "count"]),
        pl.col("position").is_not_null(),
    )
    statistic = pl.col("statistic").replace_strict(_STATISTICS, default="")
    in_us = pl.format("{}_{}_us", "quantity", statistic)
    column = pl.when(pl.col("statistic") == "count").then("quantity").otherwise(in_us)
    rows = known.with_columns(column=column, environment=pl.col("testbed").replace(_PLACES))
    return rows.pivot("column", index=["system", "environment", "position"], values="value").sort(
        "environment", "position", descending=[True, False]
    )


def with_published_system(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the frame with `post`, the name of the post's row of each server and schedulers."""
    pairs = pl.DataFrame(
        [(*ours, post) for ours, post in PUBLISHED_SYSTEM.items()],
        schema=["server", "schedulers", "post"], orient="row",
    )  # fmt: skip
    # A server without the factor runs on one CPU.
    return frame.join(
        pairs, how="left", left_on=["server", pl.col("schedulers").fill_null("one")],
        right_on=["server", "schedulers"],
    )  # fmt: skip


def latency_with_published(points: pl.DataFrame, theirs: pl.DataFrame) -> pl.DataFrame:
    """Return the 95th percentile of the latency, ours compared with the post's on its own hardware.

    One row for each server and schedulers that the post had too: label, trials, p95_ms, low, high,
    published_ms; highest first.
    """
    named = (
        with_published_system(as_planned(laws.steady(points)))
        .filter(pl.col("post").is_not_null())
        .with_columns(p95_ms=pl.col("message_latency_p95_us") / 1e3)
    )
    summary = stats.summarise(named, ["label", "post"], "p95_ms").rename({"median": "p95_ms"})
    local = theirs.filter(pl.col("environment") == PUBLISHED_ENVIRONMENT["unthrottled"]).select(
        "system", published_ms=pl.col("message_latency_p95_us") / 1e3
    )
    return (
        summary.drop_nulls("p95_ms")
        .join(local, left_on="post", right_on="system")
        .sort("published_ms", descending=True)
    )


def time_quantiles(times: pl.LazyFrame, points: pl.DataFrame, quantity: str) -> pl.DataFrame:
    """Return the quantiles of a quantity for each server and environment, its trials together.

    Columns: label, server, schedulers, environment, limited, post, p01 to p999 in ms, as
    `stats.quantiles` has them. Client-limited trials are left out, unless all of a server's are:
    then `limited` is true.
    """
    points = laws.readable(points, quantity)
    points = points.with_columns(limited=pl.col("client_limited").all().over(_KEY))
    points = points.filter(pl.col("limited") | ~pl.col("client_limited"))
    wanted = "messages_due" if quantity == "latency" else "connections_opened"
    which = [*_KEY, "limited"]
    points = points.with_columns(due=pl.sum(wanted).over(which))
    bins = times.filter(pl.col("quantity") == quantity).collect()
    chosen = bins.join(points.select(*KEY, "limited", "due"), on=KEY, maintain_order="left")
    found = stats.quantiles(chosen, which, QUANTILES, due="due")
    # Polars would multiply by the reciprocal, which adds digits.
    ms = pl.col(*QUANTILES).map_elements(lambda us: us / 1e3, return_dtype=pl.Float64)
    in_ms = found.with_columns(ms)
    return with_published_system(in_ms).sort("p50", "p99", nulls_last=True)


def connection_costs(points: pl.DataFrame) -> pl.DataFrame:
    """Return each server's memory and CPU, unthrottled, sorted by memory.

    Columns: label, `memory_kib` of a connection, `cpu_us` of a message, and the interval of each as
    low_… and high_….
    """
    plain = points.filter(pl.col("environment") == "unthrottled").with_columns(
        memory_kib=MEMORY_PER_CONNECTION.of_trial.of_point(),
        cpu_us=CPU_PER_REPLY.of_trial.of_point(),
    )
    names = {"median": "", "low": "low_", "high": "high_"}
    sides = [
        stats.summarise(plain, ["label"], column)
        .drop("trials")
        .rename({end: f"{prefix}{column}" for end, prefix in names.items()})
        for column in ("memory_kib", "cpu_us")
    ]
    return sides[0].join(sides[1], on="label").sort("memory_kib", nulls_last=True)


# Points whose whole report counts connections.
ASKED = pl.col("connections").fill_null(0) > 0
# Connections that were not open, or half open, when the run ended.
LATE = ["outcome_unfinished", "outcome_not_opened"]


def losses_table(points: pl.DataFrame) -> pl.DataFrame:
    """Return the servers that did not hold every connection or lost a message; sums over trials.

    Connections by outcome, messages, client-limited trials. Late: not open yet when the run ended.
    `client_lag_p99_ms` is the median over trials. Points without a report do not count.
    """
    failed = ["handshake_timeout", "refused", "reset", "unreachable", "handshake_rejected",
              "closed_by_server", "protocol_error", "out_of_descriptors", "out_of_ports",
              "other_error"]  # fmt: skip
    return (
        points.filter(ASKED)
        .with_columns(
            held=pl.col("outcome_completed"),
            late=pl.sum_horizontal(LATE),
            failed=pl.sum_horizontal(f"outcome_{outcome}" for outcome in failed),
            messages_lost=pl.col("messages_lost") + pl.col("messages_unsent"),
        )
        .group_by("label", pl.col("environment").replace(ENVIRONMENT_TITLES), maintain_order=True)
        .agg(
            pl.col(
                "connections", "held", "connection_timeouts", "late", "failed", "messages_due",
                "messages_lost", "messages_mismatched", "client_limited",
            ).sum().cast(pl.Int64),
            client_lag_p99_ms=pl.col("client_lag_p99_us").median() / 1e3,
        )
        .filter(
            (pl.col("held") < pl.col("connections"))
            | (pl.sum_horizontal("connection_timeouts", "messages_lost", "messages_mismatched") > 0)
        )
        .sort("environment", "label", descending=[True, False])
    )  # fmt: skip


def on_one_cpu(points: pl.DataFrame) -> pl.DataFrame:
    """Return the points, unthrottled and on one CPU, that have a report."""
    return points.filter(
        ASKED,
        pl.col("environment") == "unthrottled",
        pl.col("schedulers").fill_null("one") == "one",
    )


def held(points: pl.DataFrame) -> pl.DataFrame:
    """Return label, whole, late, outcome_completed of today's servers on one CPU, unthrottled.

    Whole: in every trial all connections were held and none timed out. Late: the connections not
    held had not been opened when the run ended.
    """
    plain = on_one_cpu(views.of_today(views.subjects(points)))
    kept = pl.col("outcome_completed") == pl.col("connections")
    whole = (kept & (pl.col("connection_timeouts") == 0)).all()
    accounted = pl.sum_horizontal("outcome_completed", *LATE)
    return plain.group_by("label", maintain_order=True).agg(
        whole.alias("whole"),
        (accounted == pl.col("connections")).all().alias("late"),
        pl.col("outcome_completed").median(),
    ).sort("label")  # fmt: skip
