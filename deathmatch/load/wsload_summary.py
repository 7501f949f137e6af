"""The summary that wsload prints: its counts, and the columns of `points` that they fill."""

import json
from itertools import chain
from operator import itemgetter

import polars as pl

from deathmatch.errors import Truncated
from deathmatch.load.generator import FIRST_WRONG, Fields, checked, combined, equal
from deathmatch.load.histogram import STATISTICS
from deathmatch.load.wsload_records import QUANTITIES

OUTCOMES = ["completed", "connect_timeout", "handshake_timeout", "refused", "reset", "unreachable",
            "handshake_rejected", "closed_by_server", "protocol_error", "out_of_descriptors",
            "out_of_ports", "other_error", "unfinished", "not_opened"]  # fmt: skip

# Column -> where it is in the summary.
_SUMMARY = {
    "connections": ("connections", "intended_count"),
    "connections_opened": ("connections", "opened_count"),
    "connections_upgraded": ("connections", "upgraded_count"),
    "messages_due": ("messages", "intended_count"),
    "messages_sent": ("messages", "sent_count"),
    "replies": ("messages", "echoed_count"),
    "messages_lost": ("messages", "lost_count"),
    "messages_unsent": ("messages", "unsent_count"),
    "messages_mismatched": ("messages", "mismatched_count"),
    FIRST_WRONG: ("messages", "first_mismatched"),
    "client_lag_p99_us": ("client", "lag", "p99_us"),
    "client_lag_max_us": ("client", "lag", "max_us"),
    "client_cpu_us": ("client", "cpu_us"),
    "client_rss_peak_bytes": ("client", "resident_peak_bytes"),
    "client_loop_busy_share": ("client", "loop_busy_share"),
    "client_step_us": ("client", "step_us"),
    "client_hold_us": ("client", "hold_us"),
}
# The pace of sending, which the CPU time of a message depends on (0: at once).
_PACE = ("client_step_us", "client_hold_us")
_OPENED = {
    "connections_opening_max": ("connections", "most_opening_count"),
    "first_started_us": ("connections", "first_started_us"),
    "last_upgraded_us": ("connections", "last_upgraded_us"),
}
# Null if there was nothing to measure.
_MAYBE_NULL = ("client_lag_p99_us", "client_lag_max_us", FIRST_WRONG, "client_hold_us", *_OPENED)
RSS = {
    "server_rss_before_bytes": pl.Int64,
    "server_rss_held_bytes": pl.Int64,
    "server_rss_per_connection_bytes": pl.Float64,
    "server_established_max": pl.Int64,
}

# The opening of connections, from the first one's start to the last one's upgrade.
OPENING = {"opening_rate_cps": pl.Float64, "connections_opening_max": pl.Int64}
# From the trial's record: the connections that came and went before a rate (measure.churn).
CHURN = {
    "warm_up_rounds": pl.Int64,
    "warm_up_first_cps": pl.Float64,
    "warm_up_last_cps": pl.Float64,
    "warm_up_steady": pl.Boolean,
}

COLUMNS = (
    {
        name: pl.Float64 if name.endswith("_share") else pl.Int64
        for name in [*_SUMMARY, *(f"outcome_{outcome}" for outcome in OUTCOMES)]
    }
    | {"connections_starved": pl.Int64, "connection_timeouts": pl.Int64}
    | dict.fromkeys((FIRST_WRONG, "client_limited_by"), pl.String)
    | {
        f"{begin}_{statistic}_us": kind
        for begin in QUANTITIES.values()
        for statistic, kind in STATISTICS.items()
    }
    | {"message_latency_growth": pl.Float64, "reply_rate_offered_window_rps": pl.Float64}
    | RSS
    | OPENING
    | CHURN
)


# How several clients' summaries are combined, in columns that are not added. A quantile of the lag
# is known for each client only; that of all is at most the largest.
_COMBINED = {
    **dict.fromkeys(
        ("client_lag_p99_us", "client_lag_max_us", "client_loop_busy_share", *_PACE), max
    ),
    "first_started_us": min, "last_upgraded_us": max, FIRST_WRONG: itemgetter(0),
    "client_limited_by": lambda values: "; ".join(dict.fromkeys(chain.from_iterable(values))),
}  # fmt: skip


def fields_of(texts: tuple[str, ...], times: pl.DataFrame) -> Fields:
    """Return the counts of all clients' summaries, and why clients did not keep their schedules.

    For several clients `connections_opening_max` is the sum. Raises Truncated if a summary is
    truncated, contradicts itself, or is not that of the records with the histograms `times`.
    """
    parts = [_fields(text) for text in texts]
    fields = combined(parts, _COMBINED)
    _check_records(times, fields)
    began_us, ended_us = fields["first_started_us"], fields["last_upgraded_us"]
    took_us = 0 if None in (began_us, ended_us) else ended_us - began_us
    rate_cps = fields["connections_upgraded"] / took_us * 1e6 if took_us else 0.0
    return fields | {"opening_rate_cps": rate_cps}


def _fields(text: str) -> Fields:
    """Return the counts of one client's summary, and a list of reasons."""
    summary = _json(text)
    try:
        fields = {name: _at(summary, path) for name, path in (_SUMMARY | _OPENED).items()}
        outcomes = summary["connections"]["outcomes_count"]
        fields |= {f"outcome_{name}": outcomes.get(name, 0) for name in OUTCOMES}
        reasons = summary["client"]["limited_by"]
    except (KeyError, TypeError, AttributeError) as error:
        raise Truncated(f"the summary is not whole: {error}") from None
    if not isinstance(reasons, list) or not all(isinstance(reason, str) for reason in reasons):
        raise Truncated("the summary is not whole: it does not say what limited the client")
    checked(fields, COLUMNS | dict.fromkeys(_OPENED, pl.Int64))
    for name in fields:
        if fields[name] is None and name not in _MAYBE_NULL:
            raise Truncated(f"the summary is not whole: {name} is null")
    if unknown := sorted(set(outcomes) - set(OUTCOMES)):
        raise Truncated(f"no outcome of a connection is called {unknown[0]!r}")
    of_outcomes = sum(fields[f"outcome_{name}"] for name in OUTCOMES)
    equal("connections by outcome", of_outcomes, "all connections", fields["connections"])
    ended = fields["messages_sent"] + fields["messages_unsent"]
    equal("messages sent and unsent", ended, "those due", fields["messages_due"])
    answered = fields["replies"] + fields["messages_lost"]
    equal("messages echoed and lost", answered, "those sent", fields["messages_sent"])
    return fields | {"client_limited_by": reasons}


def _check_records(times: pl.DataFrame, fields: Fields) -> None:
    """Raise Truncated if the histograms and the summaries count differently."""
    if times.is_empty():
        return
    for quantity, name in (
        ("latency", "messages_due"), ("service_time", "messages_sent"),
        ("handshake_time", "connections_opened"),
    ):  # fmt: skip
        held = times.filter(pl.col("quantity") == quantity)["count"].cast(pl.Int64).sum()
        equal(f"the records of {quantity}", held, "the summary's", fields[name])


def _json(text: str) -> dict:
    try:
        # Messages for the user precede and follow the summary.
        return json.JSONDecoder().raw_decode(text[text.index("{") :])[0]
    except (ValueError, RecursionError) as error:
        raise Truncated(f"the summary is not whole: {error}") from None


def _at(summary: dict, path: tuple[str, ...]) -> int | float | None:
    for key in path:
        summary = summary[key]
    return summary
