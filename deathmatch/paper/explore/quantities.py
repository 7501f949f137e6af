"""The quantities that the explorer shows of a variant.

Each is one of `deathmatch.quantities`, one number a trial.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from deathmatch.quantities.definitions import (
    CAPACITY,
    CPU_PER_REPLY,
    LARGEST_RSS,
    QUANTITIES,
    SWITCHES_PER_REPLY,
)
from deathmatch.quantities.quantity import Quantity


@dataclass(frozen=True)
class Shown:
    """One column of the explorer; `name` is its key, with its unit.

    `quantity` says how it is computed, `definition` the same in words. `scale` is from the
    quantity's unit to that of the name.
    """

    name: str
    title: str
    unit: str
    definition: str
    quantity: Quantity
    scale: float = 1.0


def _shown(name: str) -> Shown:
    quantity = QUANTITIES[name]
    return Shown(name, quantity.title, quantity.unit, quantity.definition, quantity)


ERRORS = replace(_shown("error_ratio"), name="error_percent", title="errors", unit="%", scale=100)
WRONG = replace(
    _shown("wrong_ratio"), name="wrong_percent", title="wrong answers", unit="%", scale=100
)
_CPU = _shown(CPU_PER_REPLY.name)
_COST = [_CPU, _shown(SWITCHES_PER_REPLY.name), _shown(LARGEST_RSS.name)]
_RESPONSE = _shown("response_time_mean_us")
_MESSAGES = [
    _shown(name)
    for name in (
        "message_latency_p50_us", "message_latency_p95_us", "handshake_time_mean_us",
        "connections_held",
    )
]  # fmt: skip

# CPU per reply depends on how many messages the client sends together.
_PACING = [_shown("client_step_us"), _shown("client_hold_us")]

# By load generator, what is shown of a whole sweep, and of each offered rate.
OF_SWEEPS = {
    "httperf": [_shown(CAPACITY.name), _CPU, ERRORS, WRONG, *_COST[1:], _RESPONSE],
    "roundtrip": [_shown(CAPACITY.name), _CPU, ERRORS, WRONG, *_COST[1:]],
    "wsload": [*_MESSAGES, _CPU, *_PACING, *_COST[1:]],
    None: [_shown("bytes_per_message")],
}
OF_RATES = {
    "httperf": [_shown("reply_rate_rps"), _CPU, ERRORS, WRONG, _RESPONSE, *_COST[1:]],
    "roundtrip": [_shown("reply_rate_rps"), _CPU, ERRORS, WRONG, *_COST[1:]],
}


def named(clients: Iterable[str | None]) -> dict[str, Shown]:
    """Return every quantity shown with these load generators, by name, the first ones first."""
    return {
        shown.name: shown
        for client in dict.fromkeys(clients)
        for shown in (*OF_SWEEPS.get(client, ()), *OF_RATES.get(client, ()))
    }
