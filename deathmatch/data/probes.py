"""What a search's probes told, from their reports: while it runs, and again from its raw logs."""

from collections.abc import Sequence

import polars as pl

from deathmatch.capacity_search import search
from deathmatch.capacity_search.search import End, Told
from deathmatch.data import kernel_samples, point_limits
from deathmatch.errors import Truncated
from deathmatch.load import registry
from deathmatch.load.generator import Timed
from deathmatch.plan import record

# Beside the logs: the kernel's counters while it searched, as `data.kernel_samples` has them.
SAMPLES_CSV = "search.csv"
# What the search came to, which the row of its last probe has.
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
    "replies": pl.Int64,
    "server_cpu_ns": pl.Int64,
    **END,
}


def row(probe: dict, parts: Sequence, samples: pl.DataFrame, spec: dict) -> dict:
    """Return the columns of `probes` beside the key, without its number and those of END.

    `parts` are the reports of the probe's clients, `samples` those of the search, `spec` the
    trial's. `late_10_ms` and `late_1_s` count those of what was due that had no right answer in
    that time. A truncated report leaves the counts null.
    """
    client = registry.generator(spec["client"])
    spec = spec | {"duration_s": probe["duration_s"]}
    offered = probe["offered_rate_rps"]
    taken = pl.col("time_us").is_between(probe["began_us"], probe["ended_us"])
    during = samples.filter(taken, pl.col("offered_rate_rps") == offered)
    report = client.merge(parts) if len(parts) > 1 else parts[0]
    counts: dict[str, int | None] = dict.fromkeys(("due", "late_10_ms", "late_1_s"))
    try:
        fields, whole = client.parse(report, probe["duration_s"]), "whole"
        timed = client.timed(report, fields)
        counts["due"] = timed.due
        counts["late_10_ms"] = late(timed, search.LIMIT_US)
        counts["late_1_s"] = late(timed, search.LONG_US)
    except Truncated:
        fields, whole = dict.fromkeys(client.columns), "truncated"
    actual = client.actual_rate_rps(fields, during, spec)
    limited = client.limited(fields, offered, actual)
    if len(parts) > 1:
        limited, _ = point_limits.of_several(probe, parts, actual, spec)
    found = {
        "round": probe["round"],
        "step": probe["step"],
        "offered_rate_rps": offered,
        "duration_us": round(probe["duration_s"] * 1e6),
        "server_state": probe["server_state"],
        "client_state": record.client_state(probe),
        "report": whole,
        "actual_rate_rps": actual,
        "client_limited": limited,
        **counts,
        "accept_queue_limit": during["accept_queue_limit"].max(),
        "replies": fields["replies"],
        "server_cpu_ns": kernel_samples.growth(during["server_cpu_ns"]),
    }
    return found | {"over": told(found).over}


def late(timed: Timed, limit_us: int) -> int:
    """Return how many of those due had no right answer within a time."""
    in_time = timed.times.filter(pl.col("time_us") <= limit_us)["count"].sum()
    return min(timed.due, max(0, timed.due - in_time) + timed.wrong)


def told(found: dict) -> Told:
    """Return what a row tells the search: nothing good of a server that failed at it."""
    unknown = found["server_state"] != "ran" or not found["due"]
    share = None if unknown else found["late_10_ms"] / found["due"]
    return Told(share, found["client_limited"])


def told_of_all(found: Sequence[dict], asked: dict, reason: str) -> list[dict]:
    """Return the rows of a whole search with their numbers and what it came to.

    `asked` is the spec's `search`, `reason` why the search broke off, if it did.
    """
    _, end = search.replayed(asked, [told(one) for one in found])
    end = end or End(search.REFUSED, reason=reason)
    values = (end.outcome, end.rate_rps, end.low_rps, end.high_rps, end.reason)
    return [
        {"probe": number, **one, **dict.fromkeys(END)}
        | (dict(zip(END, values)) if number == len(found) else {})
        for number, one in enumerate(found, 1)
    ]
