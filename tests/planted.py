"""Servers of a planted capacity, simulated, for searches; run, it compares many with a grid.

`python -m tests.planted 500` prints for each kind of server, of 500 planted capacities, which share
a search finds within 2 and 3 %, refuses, and gets wrong, with how many probes in how many seconds;
and the same of a grid of rates 3 % apart.
"""

import math
import sys
from dataclasses import dataclass, field, replace

import numpy as np

from deathmatch.capacity_search import search
from deathmatch.capacity_search.search import End, Offer, Result

ASKED = {
    "probe_s": 2, "probes": 24, "most_rps": 100_000, "margin": 1.08, "cost_shares": [0.1, 0.5, 0.9],
}  # fmt: skip
# What passes between two probes.
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
        # What is served when nothing waits is lost (Lindley 1952).
        wanted = could[:count] + ahead - np.minimum.accumulate(ahead)
        done_s = np.interp(wanted, could, np.arange(len(could)) * TICK_S, right=math.inf)
        self.now_s += duration_s + BETWEEN_S
        self.probes += 1
        return float((done_s - at_s[:count] > search.LIMIT_US / 1e6).mean())

    def told(self, offer: Offer) -> Result:
        """Return what a probe of it tells."""
        limited = offer.rate_rps > self.client_rps
        return Result(self.late_share(offer.rate_rps, offer.duration_s), limited)


def searched(server: Planted, asked: dict = ASKED) -> tuple[End, list[tuple[Offer, Result]]]:
    """Return what a search of it comes to, and its probes."""
    probing, made = search.probing(asked), []
    offer = next(probing)
    while True:
        told = server.told(offer)
        made.append((offer, told))
        try:
            offer = probing.send(told)
        except StopIteration as ended:
            return ended.value, made


def on_grid(server: Planted, step: float = 1.03, rate_s: float = 4) -> float:
    """Return the middle between the last rate in time and the first over, of one pass."""
    rate, last = 500.0, math.nan
    while rate <= 40_000:
        over = server.late_share(rate, rate_s) > search.LATE_SHARE
        last = rate / math.sqrt(step) if over and math.isnan(last) else last
        rate *= step
    return last


KINDS = {
    "a sharp knee": {},
    "a knee 5 % wide": {"width": 0.05},
    "a knee 10 % wide": {"width": 0.1},
    "5 %, a stall of 100 ms every 5 s": {"width": 0.05, "stalls_per_s": 0.2},
    "5 %, a minute at half": {"width": 0.05, "foreign_share": 0.5},
    "5 %, a minute at 85 %": {"width": 0.05, "foreign_share": 0.85},
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


def main(count: int) -> None:
    """Print a line for each kind of server, of searches and of a grid."""
    for kind in KINDS:
        errors, covered, servers = [], 0, planted(kind, count)
        for one in servers:
            end, _ = searched(one)
            if end.outcome == search.FOUND:
                errors.append(end.rate_rps / one.capacity_rps - 1)
                covered += end.low_rps <= one.capacity_rps <= end.high_rps
        print(f"search, {kind}: {_line(errors, servers)}, covered {covered / len(errors):.3f}")
        servers = planted(kind, max(1, count // 10))
        found = [on_grid(one) / one.capacity_rps - 1 for one in servers]
        print(f"grid,   {kind}: {_line([e for e in found if not math.isnan(e)], servers)}")


def _line(errors: list[float], servers: list[Planted]) -> str:
    of, off = len(servers), np.abs(errors)
    probes, took_s = [one.probes for one in servers], [one.now_s for one in servers]
    return (
        f"of {of}, within 2 % {(off <= 0.02).sum() / of:.3f}, within 3 % "
        f"{(off <= 0.03).sum() / of:.3f}, none {1 - len(off) / of:.3f}, wrong "
        f"{(off > 0.03).sum() / of:.3f}, worst {off.max():.3f}, mean {np.mean(errors):+.4f}, "
        f"{np.median(probes):.0f} probes ({max(probes)}), {np.median(took_s):.0f} s "
        f"({max(took_s):.0f})"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]))
