"""The reports of one offered rate: of a point of the tables, or a probe of a search.

In: a point as in `trial.json`, and the reports of its clients. Out: the fields of the load
generator, the rate that was really offered, and whether a client, not the server, was the limit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from deathmatch.data.kernel_samples import SCHEMA as SAMPLES
from deathmatch.errors import Truncated
from deathmatch.load import registry
from deathmatch.load.generator import Fields, LoadGenerator
from deathmatch.plan import record
from deathmatch.quantities.quantity import REPLY

# The column for a load generator's reason why it was the limit; not all have it.
REASON = "client_limited_by"
NO_SAMPLES = pl.DataFrame(schema=SAMPLES)


@dataclass(frozen=True)
class Offered:
    """One offered rate; `report` is of all clients, and `fields` are null if it is truncated."""

    client: LoadGenerator
    report: Any
    fields: Fields
    whole: bool
    actual_rate_rps: float | None
    client_limited: bool

    @property
    def good_replies(self) -> int | None:
        """The number of good answers; None if the report is truncated."""
        return self.client.good(self.fields) if self.whole else None

    @property
    def good_reply_rate_rps(self) -> float | None:
        """The rate of good answers while load was offered; None if it is unknown."""
        rate_rps = self.fields.get(REPLY)
        if rate_rps is None or not self.fields["replies"]:
            return rate_rps
        return rate_rps * (self.good_replies / self.fields["replies"])

    def columns(self, point: Mapping[str, Any], duration_s: float) -> dict[str, Any]:
        """Return the columns that points and probes have in common."""
        return {
            "offered_rate_rps": point["offered_rate_rps"],
            "duration_us": round(duration_s * 1e6),
            "server_state": point["server_state"],
            "client_state": record.client_state(point),
            "report": "whole" if self.whole else "truncated",
            "actual_rate_rps": self.actual_rate_rps,
            "client_limited": self.client_limited,
        }


def read(client: LoadGenerator, point: Mapping[str, Any], folder: Path) -> list:
    """Return the reports of a point's clients, from their logs in the trial's folder."""
    return [client.read(folder / load["log"]) for load in record.loads(point)]


def offered(
    point: Mapping[str, Any], reports: Sequence, during: pl.DataFrame, spec: Mapping[str, Any]
) -> Offered:
    """Return what a point's clients offered, by their reports.

    `during` has the kernel's samples while the rate was offered, `spec` is the trial's, with the
    point's `duration_s`.
    """
    client = registry.of_trial(spec)
    report = client.merge(reports) if len(reports) > 1 else reports[0]
    try:
        fields, whole = client.parse(report, spec["duration_s"]), True
    except Truncated:
        fields, whole = dict.fromkeys(client.columns), False
    actual = client.actual_rate_rps(fields, during, spec)
    if len(reports) == 1:
        limited = client.limited(fields, point["offered_rate_rps"], actual)
    else:
        limited, reasons = _limits(client, point, reports, actual, spec)
        if whole and REASON in fields:
            fields[REASON] = reasons
    return Offered(client, report, fields, whole, actual, limited)


def _limits(
    client: LoadGenerator, point: Mapping[str, Any], reports: Sequence,
    actual_rate_rps: float | None, spec: Mapping[str, Any],
) -> tuple[bool, str]:  # fmt: skip
    """Return whether one of several clients limited a point, and the reasons, each with its name.

    Each client is judged by its own report and rate; if that is unknown, by an equal share of the
    rate that all offered.
    """
    share_rps = point["offered_rate_rps"] / len(reports)
    equal_rps = None if actual_rate_rps is None else actual_rate_rps / len(reports)
    limited, reasons = False, []
    for load, report in zip(record.loads(point), reports):
        try:
            fields = client.parse(report, spec["duration_s"])
        except Truncated:
            return True, ""
        own_rps = client.actual_rate_rps(fields, NO_SAMPLES, spec, load["opened"])
        late = (load["late_us"] or 0) > record.LATE_US
        rate_rps = equal_rps if own_rps is None else own_rps
        limited |= late or client.limited(fields, share_rps, rate_rps)
        if late:
            reasons.append(f"{load['client']}: began {load['late_us'] / 1000:.0f} ms late")
        if why := fields.get(REASON):
            reasons.append(f"{load['client']}: {why}")
    return limited, "; ".join(reasons)
