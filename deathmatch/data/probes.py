"""The probes of a search, read from their reports while it runs, and later from its raw logs."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from deathmatch.capacity_search import search
from deathmatch.capacity_search.search import End, Result
from deathmatch.data import kernel_samples
from deathmatch.data.offered_rate import offered
from deathmatch.load.generator import Timed
from deathmatch.quantities.quantity import REPLY

# A file next to the logs: the kernel's counters while it searched (`data.kernel_samples`).
SAMPLES_CSV = "search.csv"
# The beginning of the logs' names.
PROBE_LOGS = "probe-"
# The result of the search, in the row of its last probe only.
END = {
    "outcome": pl.String,
    "capacity_rps": pl.Float64,
    "capacity_low_rps": pl.Float64,
    "capacity_high_rps": pl.Float64,
    "reason": pl.String,
}
COLUMNS = {
    "probe": pl.Int64,
    "round": pl.Int64,
    "step": pl.String,
    "offered_rate_rps": pl.Int64,
    "duration_us": pl.Int64,
    "server_state": pl.String,
    "client_state": pl.String,
    "report": pl.String,
    "actual_rate_rps": pl.Float64,
    "client_limited": pl.Boolean,
    "due": pl.Int64,
    "late_10_ms": pl.Int64,
    "late_1_s": pl.Int64,
    "over": pl.Boolean,
    "accept_queue_limit": pl.Int64,
    "server_listen_overflows": pl.Int64,
    "replies": pl.Int64,
    REPLY: pl.Float64,
    "errors_total": pl.Int64,
    "errors_client_timeout": pl.Int64,
    "server_cpu_ns": pl.Int64,
    "capacity_share": pl.Float64,
    **END,
}


def row(
    probe: Mapping[str, Any], reports: Sequence, samples: pl.DataFrame, spec: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the columns of `probes` without the key, the number, the share and those of END.

    `reports` are those of the probe's clients, `samples` those of the search, `spec` is the
    trial's. `late_10_ms` and `late_1_s` count what was due and had no right answer in that time;
    they are null if the report is truncated. If the client counts from when a request was due,
    `client_limited` is false for a probe that was in time.
    """
    taken = pl.col("time_us").is_between(probe["began_us"], probe["ended_us"])
    during = samples.filter(taken, pl.col("offered_rate_rps") == probe["offered_rate_rps"])
    duration_s = probe["duration_s"]
    rate = offered(probe, reports, during, {**spec, "duration_s": duration_s})
    counts: dict[str, int | None] = dict.fromkeys(("due", "late_10_ms", "late_1_s"))
    limited = {}
    if rate.whole:
        timed = rate.client.timed(rate.report, rate.fields)
        counts = {
            "due": timed.due,
            "late_10_ms": late(timed, search.LIMIT_US),
            "late_1_s": late(timed, search.LONG_US),
        }
        own_delay = rate.client.own_delay(rate.fields, search.LIMIT_US)
        if own_delay is not None:
            in_time = counts["late_10_ms"] <= search.LATE_SHARE * counts["due"]
            limited = {"client_limited": own_delay and not in_time}
    columns = {
        "round": probe["round"],
        "step": probe["step"],
        **rate.columns(probe, duration_s),
        **limited,
        **counts,
        "accept_queue_limit": during["accept_queue_limit"].max(),
        "server_listen_overflows": kernel_samples.growth(during["server_listen_overflows"]),
        "replies": rate.good_replies,
        REPLY: rate.good_reply_rate_rps,
        **{name: rate.fields.get(name) for name in ("errors_total", "errors_client_timeout")},
        "server_cpu_ns": kernel_samples.growth(during["server_cpu_ns"]),
    }
    return columns | {"over": result(columns).over}


def late(timed: Timed, limit_us: int) -> int:
    """Return how many of the due requests had no right answer within the limit."""
    in_time = timed.times.filter(pl.col("time_us") <= limit_us)["count"].sum()
    return min(timed.due, max(0, timed.due - in_time) + timed.wrong)


def result(probe: Mapping[str, Any]) -> Result:
    """Return the result of a row's probe; if the server failed, the late share is None."""
    unknown = probe["server_state"] != "ran" or not probe["due"]
    share = None if unknown else probe["late_10_ms"] / probe["due"]
    return Result(share, probe["client_limited"])


def numbered(rows: Sequence[dict], asked: Mapping[str, Any], reason: str) -> list[dict]:
    """Return the rows of a whole search with their numbers and shares, and the search's result.

    `asked` is the spec's `search`, `reason` why the search broke off, if it did.
    """
    offers, end = search.replayed(asked, [result(probe) for probe in rows])
    end = end or End(search.REFUSED, reason=reason)
    values = (end.outcome, end.rate_rps, end.low_rps, end.high_rps, end.reason)
    # Where reports are damaged, the replay may end before the rows do.
    shares = [offer.share for offer in offers] + [None] * len(rows)
    return [
        {"probe": number, **probe, "capacity_share": share, **dict.fromkeys(END)}
        | (dict(zip(END, values)) if number == len(rows) else {})
        for number, (probe, share) in enumerate(zip(rows, shares), 1)
    ]
