"""The quantities that the explorer shows of a variant: names, units, and how each is computed.

Each is a statistic of `deathmatch.analysis.trial_statistics`, one number a trial, or a quantile of
the times at the highest offered rate.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from deathmatch.analysis import trial_statistics


@dataclass(frozen=True)
class Quantity:
    """One quantity; `name` is its column, with its unit.

    `statistic` is a key of `measures.STATISTICS`; where it is empty, `share` is a quantile of the
    times. `scale` is from the statistic's unit to that of the name.
    """

    name: str
    title: str
    unit: str
    statistic: str = ""
    share: float = 0.0
    scale: float = 1.0


def _of(statistic: str) -> Quantity:
    return Quantity(statistic, *trial_statistics.title(statistic), statistic)


REPLY_RATE = Quantity("reply_rate_rps", "reply rate", "req/s", "reply_rate_rps")
ERRORS = Quantity("error_percent", "errors", "%", "error_ratio", scale=100)
_COST = [_of("cpu_us_per_reply"), _of("context_switches_per_reply"), _of("server_rss_bytes")]
_RESPONSE = Quantity(
    "response_time_mean_us", "mean response time", "µs", "response_time_mean_us"
)  # fmt: skip
_TIMES = [
    Quantity("time_p50_us", "median time", "µs", share=0.5),
    Quantity("time_p99_us", "99th percentile of the time", "µs", share=0.99),
]
_MESSAGES = [
    Quantity("message_latency_p50_us", "median message latency", "µs", "message_latency_p50_us"),
    Quantity(
        "message_latency_p95_us", "95th percentile of the message latency", "µs",
        "message_latency_p95_us",
    ),
    Quantity("handshake_time_mean_us", "mean handshake time", "µs", "handshake_time_mean_us"),
    Quantity("connections_held", "connections held", "", "connections_held"),
]  # fmt: skip
_STORED = [_of("bytes_per_message")]

_OF_SWEEPS = {
    "httperf": [_of(trial_statistics.PEAK), _COST[0], *_TIMES, ERRORS, *_COST[1:], _RESPONSE],
    "roundtrip": [_of(trial_statistics.PEAK), _COST[0], *_TIMES, ERRORS, *_COST[1:]],
    "wsload": [*_MESSAGES, *_COST],
    None: _STORED,
}
_OF_RATES = {
    "httperf": [REPLY_RATE, _COST[0], ERRORS, _RESPONSE, *_COST[1:]],
    "roundtrip": [REPLY_RATE, _COST[0], ERRORS, *_COST[1:]],
}

# The quantity of a point's histogram that a client's user waits for: of those that it has, the
# first. A closed loop has no intended send, so no latency.
TIMED = {
    "httperf": ["connection_time"],
    "roundtrip": ["latency", "service_time"],
    "wsload": ["latency"],
}
# Shares of the times that the distribution is drawn at.
SHARES = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999)


def of_sweep(client: str | None) -> list[Quantity]:
    """Return what is told of a whole sweep, of an experiment with this load generator."""
    return _OF_SWEEPS.get(client, [])


def of_rate(client: str | None) -> list[Quantity]:
    """Return what is told of each offered rate."""
    return _OF_RATES.get(client, [])


def named(clients: Iterable[str | None]) -> dict[str, Quantity]:
    """Return every quantity told with these load generators, by name, the first ones first."""
    found = {}
    for client in dict.fromkeys(clients):
        found |= {each.name: each for each in [*of_sweep(client), *of_rate(client)]}
    return found
