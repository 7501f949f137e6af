"""Whether a client, not the server, limited what several of them offered, and for which reasons."""

from collections.abc import Sequence

import polars as pl

from deathmatch.data.kernel_samples import SCHEMA as SAMPLES
from deathmatch.errors import Truncated
from deathmatch.load import registry
from deathmatch.load.generator import Fields
from deathmatch.plan import record

# The column in which a load generator tells why it was the limit, if it has one.
REASON = "client_limited_by"
NO_SAMPLES = pl.DataFrame(schema=SAMPLES)


def of_several(
    point: dict, parts: Sequence, actual_rate_rps: float | None, spec: dict
) -> tuple[bool, str]:
    """Return whether any client limited the point, and for what reasons of its own, by name.

    Each is judged by its own report and the rate that it offered itself. Where that is unknown, it
    is taken for an equal share of the rate that all offered.
    """
    client, loads = registry.generator(spec["client"]), record.loads(point)
    share_rps = point["offered_rate_rps"] / len(parts)
    equal_rps = None if actual_rate_rps is None else actual_rate_rps / len(parts)
    limited, reasons = False, []
    for load, report in zip(loads, parts):
        try:
            fields: Fields = client.parse(report, spec["duration_s"])
        except Truncated:
            return True, ""
        own = client.actual_rate_rps(fields, NO_SAMPLES, spec, load["opened"])
        rate_rps = equal_rps if own is None else own
        late = (load["late_us"] or 0) > record.LATE_US
        limited |= late or client.limited(fields, share_rps, rate_rps)
        if late:
            reasons.append(f"{load['client']}: began {load['late_us'] / 1000:.0f} ms late")
        if why := fields.get(REASON):
            reasons.append(f"{load['client']}: {why}")
    return limited, "; ".join(reasons)
