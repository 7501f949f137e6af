"""Ten thousand WebSockets: latencies, memory and outcomes by server, with the post's own numbers.

In: the experiment's points, and the values of Moritz 2012. Out: frames for
`deathmatch.paper.charts.c10k` and tables.
"""

import polars as pl

from deathmatch.analysis import phrases, published, stats, views
from deathmatch.analysis.stats import Interval
from deathmatch.data import laws
from deathmatch.quantities.definitions import CPU_PER_REPLY, MEMORY_PER_CONNECTION

_PLACES = {"moritz2012-local": "local", "moritz2012-ec2": "EC2"}
_STATISTICS = {"mean": "mean", "stddev": "stddev", "median": "p50", "p95": "p95", "p99": "p99",
               "p99.9": "p999"}  # fmt: skip


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
    pairs = published.systems().rename({"system": "post"})
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
    local = theirs.filter(environment="local").select(
        "system", published_ms=pl.col("message_latency_p95_us") / 1e3
    )
    return (
        summary.drop_nulls("p95_ms")
        .join(local, left_on="post", right_on="system")
        .sort("published_ms", descending=True)
    )


def connection_costs(points: pl.DataFrame) -> pl.DataFrame:
    """Return each server's memory and CPU, sorted by memory.

    Columns: label, `memory_kib` of a connection, `cpu_us` of a message, and the interval of each as
    low_… and high_….
    """
    plain = points.with_columns(
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
        .group_by("label", maintain_order=True)
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
        .sort("label")
    )  # fmt: skip


def on_one_cpu(points: pl.DataFrame) -> pl.DataFrame:
    """Return the points on one CPU that have a report."""
    return points.filter(ASKED, pl.col("schedulers").fill_null("one") == "one")


def held(points: pl.DataFrame) -> pl.DataFrame:
    """Return label, whole, late, outcome_completed of today's servers on one CPU.

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


def timed_out_at_pace(points: pl.DataFrame) -> pl.DataFrame:
    """Return how many connections timed out in trials at the pace of the post's client, on one CPU.

    Columns: label, and INTERVAL of `connection_timeouts` over trials, the highest median first.
    """
    at_pace = on_one_cpu(views.subjects(points)).filter(opening=0)
    timed_out = stats.summarise(at_pace, ["label"], "connection_timeouts")
    return timed_out.sort("median", descending=True)


def most_timed_out(timed_out: pl.DataFrame) -> str:
    """Return which row of `timed_out_at_pace` has the most, and how many of the others have any."""
    if not len(timed_out):
        return f"connections that timed out: {phrases.NOT_MEASURED}"
    most, others = timed_out.row(0, named=True), timed_out[1:]
    lost = phrases.interval(Interval.from_row(most))
    with_any = phrases.part((others["high"] > 0).sum(), len(others))
    return f"{most['label']} lost {lost} of ten thousand, and {with_any} others lost any"
