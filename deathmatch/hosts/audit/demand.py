"""What a trial's load asks of its hosts: connections that are open at once, and new ones a second.

Read from the experiment's `[load]` and the rates: a client that sends a number of requests over
each connection opens new ones all the time, one whose connections have a number or an interval
holds them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from deathmatch.hosts.audit.facts import Demand
from deathmatch.load import registry


def open_at_most(load: Mapping[str, Any], rate_rps: float, duration_s: float) -> int:
    """Return how many connections a rate has open if nothing is answered, until the time-out.

    `load` opens one for every `requests_per_connection`.
    """
    per_s = rate_rps / load["requests_per_connection"]
    return round(per_s * min(duration_s, load["timeout_s"]))


def trial_demand(spec: Mapping[str, Any]) -> Demand:
    """Return what a trial asks at its highest rate; `spec` is `Trial.spec()`, as it is recorded.

    `connections_worst` is what a server that answers nothing makes of it, until the client's
    timeout. A trial without load asks nothing.
    """
    if "client" not in spec:
        return Demand()
    load, duration_s = spec["load"], spec["duration_s"]
    rate_rps = max(spec["rates_rps"])
    idle = spec["factors"].get(registry.IDLE_FACTOR, 0)
    per_s, worst = 0.0, 0
    if "requests_per_connection" in load:
        per_s = rate_rps / load["requests_per_connection"]
        held = 0
        worst = open_at_most(load, rate_rps, duration_s)
    elif "connections" in load:
        held = load["connections"]
    else:
        held = round(rate_rps * load.get("interval_s", 0))
    return Demand(
        connections_held=held + idle,
        connections_worst=held + idle + worst,
        connections_per_s=per_s,
        requests_per_s=rate_rps,
        duration_s=duration_s,
    )


def most(demands: Iterable[Demand]) -> Demand:
    """Return the highest value of each quantity."""
    demands = list(demands)
    return Demand(**{
        field.name: max((getattr(demand, field.name) for demand in demands), default=0)
        for field in fields(Demand)
    })  # fmt: skip
