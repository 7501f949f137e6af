"""Servers of a planted capacity, simulated, for searches."""

import math
from dataclasses import dataclass, field, replace

import numpy as np

from deathmatch.capacity_search import search
from deathmatch.capacity_search.search import End, Offer, Result

ASKED = {
    "probe_s": 2, "probes": 24, "most_rps": 100_000, "margin": 1.08, "cost_shares": [0.1, 0.5, 0.9],
}  # fmt: skip
# The pause between two probes.
BETWEEN_S = 0.4
TICK_S = 0.002
# A deep queue is served to its end, however long that takes.
LONGEST = 3


@dataclass
class Planted:
    """A token bucket with a deep queue; `now_s` runs on with each probe.

    `width`: over which share of the rate it goes from nine probes of ten in time to one of ten;
    `stalls_per_s`, each of `stall_s`; `foreign_s`: from when to when other load leaves it
    `foreign_share` of its capacity; `client_rps`: from which rate on the client is the limit;
    `wander`: deviation of the machine's speed, as a share, which it forgets within `wander_s`
    (Ornstein and Uhlenbeck 1930).
    """

    capacity_rps: float
    seed: int
    width: float = 0
    stalls_per_s: float = 0
    stall_s: float = 0.1
    foreign_s: tuple[float, float] = (0, 0)
    foreign_share: float = 0.5
    client_rps: float = math.inf
    wander: float = 0
    wander_s: float = 20
    now_s: float = 0
    probes: int = 0
    random: np.random.Generator = field(init=False)
    _away: float = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        if self.wander:
            self._away = self.random.normal(0, self.wander)

    def _wandered(self, for_s: float) -> float:
        """Return the machine's speed after some time, as a ratio of its usual one."""
        kept = math.exp(-for_s / self.wander_s)
        self._away = kept * self._away + self.random.normal(0, self.wander * math.sqrt(1 - kept**2))
        return math.exp(self._away)

    def late_share(self, rate_rps: float, duration_s: float) -> float:
        """Return which share of evenly spaced requests waits longer than a search lets them."""
        count = round(duration_s / TICK_S)
        at_s = np.arange(LONGEST * count) * TICK_S
        # From a tenth to nine tenths of a normal distribution there are 2.563 deviations.
        capacity = self.capacity_rps * math.exp(self.random.normal(0, self.width / 2.563))
        capacity *= self._wandered(duration_s + BETWEEN_S) if self.wander else 1
        served = np.full(len(at_s), capacity)
        first, last = self.foreign_s
        during = (at_s + self.now_s >= first) & (at_s + self.now_s < last)
        served[during] *= self.foreign_share
        stalls = self.random.poisson(self.stalls_per_s * duration_s)
        for begin_s in self.random.uniform(0, duration_s, stalls):
            served[(at_s >= begin_s) & (at_s < begin_s + self.stall_s)] = 0
        could = np.concatenate([[0], np.cumsum(served * TICK_S)])
        ahead = rate_rps * at_s[:count] - could[:count]
        # Capacity is lost while nothing waits (Lindley 1952).
        wanted = could[:count] + ahead - np.minimum.accumulate(ahead)
        done_s = np.interp(wanted, could, np.arange(len(could)) * TICK_S, right=math.inf)
        self.now_s += duration_s + BETWEEN_S
        self.probes += 1
        return float((done_s - at_s[:count] > search.LIMIT_US / 1e6).mean())

    def probe(self, offer: Offer) -> Result:
        """Return the result of a probe."""
        limited = offer.rate_rps > self.client_rps
        return Result(self.late_share(offer.rate_rps, offer.duration_s), limited)


def searched(server: Planted, asked: dict = ASKED) -> tuple[End, list[tuple[Offer, Result]]]:
    """Return the end of a search, and its probes."""
    probing, made = search.probing(asked), []
    offer = next(probing)
    while True:
        result = server.probe(offer)
        made.append((offer, result))
        try:
            offer = probing.send(result)
        except StopIteration as ended:
            return ended.value, made


KINDS = {
    "a sharp knee": {},
    "a knee 10 % wide": {"width": 0.1},
    "5 %, a stall of 100 ms every 5 s": {"width": 0.05, "stalls_per_s": 0.2},
    "5 %, a minute at half": {"width": 0.05, "foreign_share": 0.5},
    "5 %, a minute at 95 %": {"width": 0.05, "foreign_share": 0.95},
}


def planted(kind: str, count: int, seed: int = 1) -> list[Planted]:
    """Return so many servers of a kind; a minute of foreign load may begin before the search."""
    random = np.random.default_rng(seed)
    made = []
    for number in range(count):
        capacity = math.exp(random.uniform(math.log(600), math.log(36_000)))
        one = Planted(capacity, 1000 * seed + number, **KINDS[kind])
        begin_s = random.uniform(-60, 100)
        foreign = (begin_s, begin_s + 60) if "foreign_share" in KINDS[kind] else (0, 0)
        made.append(replace(one, foreign_s=foreign))
    return made
