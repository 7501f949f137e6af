"""The summary that wsload prints: its counts, and the columns of `points` that they fill."""

import json
from collections.abc import Sequence

import polars as pl

from deathmatch.errors import Truncated
from deathmatch.load import sound
from deathmatch.load.generator import Fields
from deathmatch.load.wsload_records import QUANTITIES, STATISTICS

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
    "client_lag_p99_us": ("client", "lag", "p99_us"),
    "client_lag_max_us": ("client", "lag", "max_us"),
    "client_cpu_us": ("client", "cpu_us"),
    "client_rss_peak_bytes": ("client", "resident_peak_bytes"),
    "client_loop_busy_share": ("client", "loop_busy_share"),
    "client_step_us": ("client", "step_us"),
    "client_hold_us": ("client", "hold_us"),
}
# The pace at which messages were sent, which CPU per message depends on: 0 is at once. Summaries
# of an earlier wsload do not say it.
_PACE = ("client_step_us", "client_hold_us")
RSS = {
    "server_rss_before_bytes": pl.Int64,
    "server_rss_held_bytes": pl.Int64,
    "server_rss_per_connection_bytes": pl.Float64,
    "server_established_max": pl.Int64,
}

# How connections opened: over the time from the first one's start to the last one's upgrade.
OPENING = {"opening_rate_cps": pl.Float64, "connections_opening_max": pl.Int64}
# What the trial's record says of the connections that came and went before a rate (measure.churn).
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
    | {"client_limited_by": pl.String}
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


def counts_of(text: str) -> Fields:
    """Return the counts of one client's summary; Truncated if it is not whole."""
    summary = _json(text)
    try:
        has_pace = summary["client"].keys() >= {"step_us", "hold_us"}
        fields = {
            name: _at(summary, path) if has_pace or name not in _PACE else None
            for name, path in _SUMMARY.items()
        }
        outcomes = summary["connections"]["outcomes_count"]
        fields |= {f"outcome_{name}": outcomes.get(name, 0) for name in OUTCOMES}
    except (KeyError, TypeError, AttributeError) as error:
        raise Truncated(f"the summary is not whole: {error}") from None
    sound.checked(fields, COLUMNS)
    # A quantile of nothing is null there; a count never is.
    for name in fields:
        if fields[name] is None and not name.startswith(("client_lag", *_PACE)):
            raise Truncated(f"the summary is not whole: {name} is null")
    if unknown := sorted(set(outcomes) - set(OUTCOMES)):
        raise Truncated(f"no outcome of a connection is called {unknown[0]!r}")
    of_outcomes = sum(fields[f"outcome_{name}"] for name in OUTCOMES)
    sound.equal("connections by outcome", of_outcomes, "all connections", fields["connections"])
    ended = fields["messages_sent"] + fields["messages_unsent"]
    sound.equal("messages sent and unsent", ended, "those due", fields["messages_due"])
    answered = fields["replies"] + fields["messages_lost"]
    sound.equal("messages echoed and lost", answered, "those sent", fields["messages_sent"])
    return fields


def check_records(times: pl.DataFrame, parts: list[Fields]) -> None:
    """Raise Truncated if the histograms and the summaries count differently."""
    if times.is_empty():
        return
    for quantity, name in (
        ("latency", "messages_due"), ("service_time", "messages_sent"),
        ("handshake_time", "connections_opened"),
    ):  # fmt: skip
        held = times.filter(pl.col("quantity") == quantity)["count"].cast(pl.Int64).sum()
        summed = sum(part[name] for part in parts)
        sound.equal(f"the records of {quantity}", held, "the summary's", summed)


def opening(texts: Sequence[str]) -> Fields:
    """Return OPENING's fields of the clients' summaries; None where one does not tell."""
    parts = [_json(text)["connections"] for text in texts]
    if any("first_started_us" not in part for part in parts):
        return dict.fromkeys(OPENING)
    for part in parts:
        for name in ("first_started_us", "last_upgraded_us", "most_opening_count"):
            if not isinstance(part.get(name, ""), int | None):
                raise Truncated(f"the summary is not whole: {name} is not a number")
    began = [part["first_started_us"] for part in parts if part["first_started_us"] is not None]
    ended = [part["last_upgraded_us"] for part in parts if part["last_upgraded_us"] is not None]
    took_us = max(ended) - min(began) if ended else 0
    upgraded = sum(part["upgraded_count"] for part in parts)
    return {
        "opening_rate_cps": upgraded / took_us * 1e6 if took_us else 0.0,
        "connections_opening_max": sum(part["most_opening_count"] for part in parts),
    }


def limited_by(text: str) -> list[str]:
    """Return why one client did not keep its schedule, as it says; Truncated if it does not."""
    client = _json(text).get("client")
    reasons = client.get("limited_by") if isinstance(client, dict) else None
    if not isinstance(reasons, list) or not all(isinstance(reason, str) for reason in reasons):
        raise Truncated("the summary is not whole: it does not say what limited the client")
    return reasons


def _json(text: str) -> dict:
    try:
        # Messages for a person precede and follow the summary.
        return json.JSONDecoder().raw_decode(text[text.index("{") :])[0]
    except (ValueError, RecursionError) as error:
        raise Truncated(f"the summary is not whole: {error}") from None


def _at(summary: dict, path: tuple[str, ...]) -> int | float | None:
    value = summary
    for key in path:
        value = value[key]
    return value
