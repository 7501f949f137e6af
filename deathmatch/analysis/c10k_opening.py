"""How ten thousand WebSockets open: what limits it, whether it was warm, all at once or not.

In: the experiment's points, seconds and samples, as `deathmatch.analysis.c10k` has them. Out:
frames for tables, and phrases for the prose.
"""

import polars as pl

from deathmatch.analysis import phrases
from deathmatch.analysis.c10k import ASKED, ENVIRONMENT_TITLES, LATE
from deathmatch.analysis.reply_rates import RATE
from deathmatch.data.laws.kernel import CPU_QUEUE_PACKETS

# Of a run: its first and last fifth are compared, as the growth of the latency is.
_FIFTH = 0.2
# A server whose opening falls below this share is kept from it by what it has open already.
_STARVED = 0.25
# Of one CPU: a server that uses less in that time waits for something else.
_BUSY = 0.9


def ceilings(points: pl.DataFrame, seconds: pl.DataFrame, samples: pl.DataFrame) -> pl.DataFrame:
    """Return what kept each server that did not open every connection, medians over trials.

    Columns: label, environment, held; cpus, the CPUs that its processes used in the last fifth of a
    run; message_rate_rps, the messages due then that were answered, a second; message_rate_cpu_rps,
    the same a CPU; opening_first_cps and opening_last_cps, connections begun a second in the first
    and the last fifth; starved: the last is a small part of the first. A trial without samples, or
    without a report, is not in it.
    """
    key = ["server", "variant", "n", RATE]
    late = points.filter(ASKED, pl.sum_horizontal(LATE) > 0).select(
        *key, "label", "environment", "duration_us", held="outcome_completed"
    )
    begins = (1 - _FIFTH) * pl.col("duration_us")
    within = seconds.join(late.select(*key, "duration_us"), on=key).with_columns(
        at_us=1e6 * pl.col("since_start_s")
    )
    first, last = pl.col("at_us") < _FIFTH * pl.col("duration_us"), pl.col("at_us") >= begins
    part_s = _FIFTH * pl.col("duration_us").first() / 1e6
    begun = pl.col("count").filter
    opening = pl.col("quantity") == "handshake_time"
    answered = (pl.col("count") - pl.col("lost")).filter(pl.col("quantity") == "latency", last)
    rates = within.group_by(key, maintain_order=True).agg(
        message_rate_rps=answered.sum() / part_s,
        opening_first_cps=begun(opening, first).sum() / part_s,
        opening_last_cps=begun(opening, last).sum() / part_s,
    )
    offered = samples.drop_nulls(RATE).join(late.select(*key, "duration_us"), on=key)
    since_us = pl.col("time_us") - pl.col("time_us").min().over(key)
    used = (
        offered.filter((since_us >= begins) & (since_us <= pl.col("duration_us")))
        .group_by(key, maintain_order=True)
        .agg(
            cpus=(pl.col("server_cpu_ns").last() - pl.col("server_cpu_ns").first())
            / (pl.col("time_us").last() - pl.col("time_us").first()) / 1e3
        )
    )  # fmt: skip
    each = (
        late.join(rates, on=key)
        .join(used, on=key)
        .with_columns(message_rate_cpu_rps=pl.col("message_rate_rps") / pl.col("cpus"))
    )
    names = ["held", "cpus", "message_rate_rps", "message_rate_cpu_rps", "opening_first_cps",
             "opening_last_cps"]  # fmt: skip
    found = each.group_by("label", "environment", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("trials"), pl.col(names).median()
    )
    starved = pl.col("opening_last_cps") < _STARVED * pl.col("opening_first_cps")
    return found.with_columns(starved=starved).sort(
        "environment", "label", descending=[True, False]
    )


def ceilings_table(found: pl.DataFrame) -> pl.DataFrame:
    """Return `ceilings` as a table shows it."""
    whole = ["held", "message_rate_rps", "message_rate_cpu_rps", "opening_first_cps",
             "opening_last_cps"]  # fmt: skip
    return found.with_columns(
        pl.col("environment").replace(ENVIRONMENT_TITLES),
        pl.col(whole).round().cast(pl.Int64),
    ).drop("starved")


def ceiling_phrase(found: pl.DataFrame, interval_s: float) -> str:
    """Return what kept the servers of `ceilings` from opening all, unthrottled, in sentences."""
    plain = found.filter(pl.col("environment") == "unthrottled").to_dicts()
    sentences = [
        _ceiling(row, interval_s) for row in plain if row["starved"] and row["cpus"] >= _BUSY
    ]
    idle = [
        f"{row['label']} ({row['cpus']:.2f} CPUs)"
        for row in plain
        if row["starved"] and row["cpus"] < _BUSY
    ]
    if idle:
        sentences.append(
            f"{phrases.enumeration(idle)} opened ever fewer without a CPU in full use: what they "
            "waited for is not known."
        )
    others = [
        f"{row['label']} (from {phrases.number(row['opening_first_cps'])} to "
        f"{phrases.number(row['opening_last_cps'])} connections a second)"
        for row in plain
        if not row["starved"]
    ]
    if others:
        sentences.append(
            f"The pace of its handshakes is the limit of {phrases.enumeration(others)}."
        )
    return " ".join(sentences)


def _ceiling(row: dict, interval_s: float) -> str:
    due = "every second" if interval_s == 1 else f"every {interval_s:g} s"
    return (
        f"{row['label']} reached its ceiling of messages: in the last fifth of a run it answered "
        f"{phrases.number(row['message_rate_rps'])} messages a second, "
        f"{phrases.number(row['message_rate_cpu_rps'])} for each second of CPU time, and had "
        f"{phrases.number(row['held'])} connections open, on each of which a message is due {due}; "
        f"meanwhile its opening fell from {phrases.number(row['opening_first_cps'])} to "
        f"{phrases.number(row['opening_last_cps'])} connections a second (medians, "
        f"n = {row['trials']})."
    )


def warm_up_phrase(points: pl.DataFrame) -> str:
    """Return whether the rate of opening was steady before the trials, and which never were."""
    known = points.drop_nulls("warm_up_steady")
    if not len(known):
        return "The trials of this dataset are older and had no such rounds."
    rounds = known["warm_up_rounds"]
    span = f"{rounds.min()} to {rounds.max()} rounds"
    never = known.filter(~pl.col("warm_up_steady"))
    if not len(never):
        return f"It was steady before all {len(known)} trials, after {span}."
    by_server = never.group_by("label", maintain_order=True).agg(
        pl.len(), pl.col("warm_up_first_cps", "warm_up_last_cps").median()
    ).sort("label")  # fmt: skip
    named = [
        f"{row['label']} ({row['len']}, from {phrases.number(row['warm_up_first_cps'])} to "
        f"{phrases.number(row['warm_up_last_cps'])} a second)"
        for row in by_server.drop_nulls().to_dicts()
    ]
    return (
        f"It was steady before {len(known) - len(never)} of {len(known)} trials, after {span}, and "
        f"never before the others: {phrases.enumeration(named)}."
    )


def side_by_side(points: pl.DataFrame) -> pl.DataFrame:
    """Return the trials of servers that ran at more than one level of `opening` or of `run`.

    Columns: label, environment, trials, and medians: opening_max (connections in the making at a
    time), held, connection_timeouts, opening_rate_cps, handshake_p50_ms, handshake_p99_ms,
    latency_p50_ms, latency_p99_ms, growth.
    """
    asked = points.filter(ASKED)
    same = ["server", "schedulers", "environment"]
    several = pl.struct("opening", "run").n_unique().over(same) > 1
    ms = {
        f"{name}_{q}_ms": pl.col(f"{column}_{q}_us").cast(pl.Float64).median() / 1e3
        for name, column in (("handshake", "handshake_time"), ("latency", "message_latency"))
        for q in ("p50", "p99")
    }
    return (
        asked.filter(several)
        .group_by("label", pl.col("environment").replace(ENVIRONMENT_TITLES), maintain_order=True)
        .agg(
            pl.len().cast(pl.Int64).alias("trials"),
            opening_max=pl.col("connections_opening_max").median(),
            held=pl.col("outcome_completed").median(),
            connection_timeouts=pl.col("connection_timeouts").median(),
            opening_rate_cps=pl.col("opening_rate_cps").median(),
            **ms,
            growth=pl.col("message_latency_growth").median(),
        )
        .sort("environment", "label", descending=[True, False])
    )


def offered_phrase(points: pl.DataFrame) -> str:
    """Return how many trials had which level of `opening` and `run`, if there was a choice."""
    counts = {
        "opened all at once": points.filter(pl.col("opening") >= 10_000),
        "ran for five minutes": points.filter(pl.col("run") == "five-minutes"),
    }
    each = {what: len(frame.unique(["server", "variant", "n"])) for what, frame in counts.items()}
    told = [
        f"{count} {'trial' if count == 1 else 'trials'} of this dataset {what}"
        for what, count in each.items()
        if count
    ]
    return f"{phrases.enumeration(told)}." if told else "No trial of this dataset did either."


def unseen_phrase(points: pl.DataFrame) -> str:
    """Return in how many runs SYNs were lost before any listener saw them, as sentences."""
    at_once = points.filter(
        pl.col("connections_opening_max") > CPU_QUEUE_PACKETS, pl.col("server_state") == "ran"
    )
    lost = pl.col("client_syn_retransmissions") - pl.col("server_listen_drops")
    unseen = at_once.select(lost=lost).filter(pl.col("lost") > 0)["lost"]
    if unseen.is_empty():
        return ""
    return (
        f"In {len(unseen)} of the {len(at_once)} runs with more than "
        f"{phrases.number(CPU_QUEUE_PACKETS)} handshakes under way, more SYNs were sent again than "
        f"the listener dropped, by up to {phrases.number(unseen.max())}: the kernel's queue of "
        "packets for a CPU (`net.core.netdev_max_backlog`) holds "
        f"{phrases.number(CPU_QUEUE_PACKETS)}, and what is beyond no listener sees."
    )
