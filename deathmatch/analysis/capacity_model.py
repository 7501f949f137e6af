"""A simulation of clients and a server, to check the arithmetic of `capacity`.

It shares no formula with it but what a message costs: messages are events that wait for CPUs and
links, each first come, first served.
"""

import heapq
from dataclasses import dataclass, field

import numpy as np

from deathmatch.analysis.capacity import FROM_SERVER, TO_SERVER, Cost, Machine, Target, bits

CLIENT_CPU, SERVER_CPU = "client's CPU", "server's CPU"


@dataclass
class _Station:
    """Something that serves one message at a time in each of its places."""

    places: int
    service_s: float
    end_s: float
    busy_s: float = 0.0
    free: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.free = [0.0] * self.places

    def serve(self, now_s: float) -> float:
        """Return when a message that comes now is done."""
        begun = max(now_s, heapq.heappop(self.free))
        done = begun + self.service_s
        heapq.heappush(self.free, done)
        self.busy_s += max(0.0, min(done, self.end_s) - begun)
        return done


@dataclass(frozen=True)
class Outcome:
    """Messages echoed per second, shares of the time that each was busy, and a median latency."""

    rate_per_s: float
    busy: dict[str, float]
    latency_s: float


def exchanged(
    target: Target, server: tuple[Cost, Machine], client: tuple[Cost, Machine], clients: int,
    duration_s: float, seed: int = 1,
) -> Outcome:  # fmt: skip
    """Offer the target's messages at random times; return what is echoed in that time.

    A client's CPU does all that a message needs of it before it is sent: a client that is too busy
    to read what has come would only echo less. What is back by `duration_s` counts; the rate is
    that of the second half, by when queues that grow have grown.
    """
    (server_cost, server_machine), (client_cost, client_machine) = server, client
    sizes = bits(target)

    def station(places: int, service_s: float) -> _Station:
        return _Station(places, service_s, duration_s)

    def both_ways(link_bits_per_s: float) -> dict[str, _Station]:
        # A link carries one bit after the other.
        return {way: station(1, size / link_bits_per_s) for way, size in sizes.items()}

    cores = [station(client_machine.cpus, client_cost.cpu_us / 1e6) for _ in range(clients)]
    links = [both_ways(client_machine.link_bits_per_s) for _ in range(clients)]
    serving = station(server_machine.cpus, server_cost.cpu_us / 1e6)
    link = both_ways(server_machine.link_bits_per_s)
    rng = np.random.default_rng(seed)
    sent = np.sort(rng.uniform(0, duration_s, round(target.rate_per_s * duration_s)))
    whose = rng.integers(0, clients, len(sent))
    paths = [
        [cores[n], links[n][TO_SERVER], link[TO_SERVER], serving, link[FROM_SERVER],
         links[n][FROM_SERVER]]
        for n in range(clients)
    ]  # fmt: skip
    done = _run(sent, [paths[n] for n in whose], duration_s)
    echoed = done[~np.isnan(done)]
    half = duration_s / 2
    latencies = np.where(np.isnan(done), np.inf, done) - sent
    busy = {
        CLIENT_CPU: _share(cores, duration_s),
        SERVER_CPU: _share([serving], duration_s),
        TO_SERVER: _share([link[TO_SERVER]], duration_s),
        FROM_SERVER: _share([link[FROM_SERVER]], duration_s),
    }
    return Outcome(
        float((echoed > half).sum() / half),
        busy,
        float(np.quantile(latencies, 0.5, method="lower")),
    )


def _run(sent: np.ndarray, paths: list[list[_Station]], duration_s: float) -> np.ndarray:
    """Return when each message is back at its client, NaN where that is after `duration_s`."""
    done = np.full(len(sent), np.nan)
    # A message is at the next station once it has left the one before.
    events = [(float(at), number, 0) for number, at in enumerate(sent)]
    heapq.heapify(events)
    while events:
        now_s, number, stage = heapq.heappop(events)
        if now_s > duration_s:
            break
        if stage == len(paths[number]):
            done[number] = now_s
            continue
        heapq.heappush(events, (paths[number][stage].serve(now_s), number, stage + 1))
    return done


def _share(stations: list[_Station], duration_s: float) -> float:
    places = sum(station.places for station in stations)
    return sum(station.busy_s for station in stations) / (duration_s * places)
