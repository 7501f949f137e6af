"""Whether a trial on emulated CPUs, or several of them, may be believed.

Each of a server's threads has a share of a real CPU, all together as many such shares as CPUs are
emulated (`hosts.throttle`). That is a machine of so many slower CPUs only if the quota was what
held the server back. Guards of one trial, at the rate at which its server was busiest:

- `cap`: the server used up its quota, or the machine had time left that it did not use;
- `shared`: a server on several CPUs used up its quota even then. Workers that wait for each other
  leave some of it; on real CPUs they would lose far more (see `SHARING`);
- `client`: the load generator was not the limit;
- `served`: as many threads as there are CPUs did work.

Guards of several trials (`of_several`):

- `periods`: two lengths of periods give the same speed;
- `bound`: a speed-up is no larger than `most_speed_up`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

MET = "met"
USED_UP = 0.95
"""The share of its quota from which on a server on one CPU is held back by it."""
SHARING = 0.98
"""The share of their quota that a server's workers on several CPUs use, if they share little.

A worker that waits for a lock catches up in the rest of a period, so emulation hides most of what a
lock costs. Four workers of `servers/planted-lock`, with 0, 0.1, 0.3 and 0.5 of the work under the
lock, used 0.995, 0.987, 0.953 and 0.917 of the quota at the least, and were 0, 2, 33 and 90 %
faster than four CPUs are (dataset `scaling`, n = 3, November 2026, a quiet machine of two CPUs).
Between these the error passes 10 % at a share of 0.18 under the lock, and at 0.977 of the quota.
"""
CLIENT = 0.7
"""The share of one CPU below which a load generator is not the limit."""
IDLE = 0.1
"""The share of the machine's CPU time from which on a server could have used more."""
SERVED = 0.1
"""The least work of a worker, over an even share of it."""
PERIODS = 0.1
"""By how much speeds in two lengths of periods may differ."""
BOUND = 1.05
"""How far beyond its bound a speed-up may lie by noise."""


@dataclass(frozen=True)
class Guards:
    """What the guards saw at the busiest rate, as shares, and which of them are broken."""

    offered_rate_rps: int
    workers: int
    used: float
    client: float
    idle: float
    served: float
    broken: tuple[str, ...]

    def record(self) -> dict[str, Any]:
        """Return it as `emulation` of trial.json has it."""
        return asdict(self) | {"broken": list(self.broken)}

    @property
    def word(self) -> str:
        """The word for it in a table: MET, or the names of the broken guards."""
        return ", ".join(self.broken) or MET


def of_trial(points: Sequence[Mapping], throttle: Mapping) -> Guards | None:
    """Return the guards of one trial's recorded points; None if none of them can be judged.

    `throttle` is what was in force, with `emulated_cpus`.
    """
    judged = [_of_point(point, throttle) for point in points]
    known = [guards for guards in judged if guards is not None]
    return max(known, key=lambda guards: guards.used, default=None)


def _of_point(point: Mapping, throttle: Mapping) -> Guards | None:
    got, workers_us = point.get("cpu") or {}, point.get("workers_us") or []
    if not got or None in got.values() or not got["span_us"] or not got["total_us"]:
        return None
    count = throttle["emulated_cpus"]
    quota = throttle["cpu_quota_us"] / throttle["cpu_period_us"]
    used = got["server_us"] / (got["span_us"] * quota)
    client = got["client_us"] / got["span_us"]
    idle = got["idle_us"] / got["total_us"]
    least_us = workers_us[count - 1] if len(workers_us) >= count else 0
    served = least_us * count / sum(workers_us) if workers_us else 0.0
    left = used < (SHARING if count > 1 else USED_UP)
    waited = count > 1 and idle >= IDLE
    broken = {
        "cap": left and not waited,
        "shared": left and waited,
        "client": client >= CLIENT,
        "served": served < SERVED,
    }
    names = tuple(name for name, bad in broken.items() if bad)
    shown = (round(value, 4) for value in (used, client, idle, served))
    return Guards(point["offered_rate_rps"], count, *shown, names)


@dataclass(frozen=True)
class Speed:
    """What one trial came to at its highest reply rate.

    `variant` names all but the level of `schedulers`; `cost_ns` is CPU time per reply.
    """

    variant: tuple[str, ...]
    schedulers: str
    cpus: int
    period_us: int
    replies_rps: float
    cost_ns: float


def of_several(speeds: Sequence[Speed]) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Yield each broken guard of trials: the variant, its name, and what was seen."""
    for variant in sorted({speed.variant for speed in speeds}):
        by_level = {
            level: [s for s in speeds if (s.variant, s.schedulers) == (variant, level)]
            for level in ("one", "all")
        }
        for level, own in by_level.items():
            by_period: dict[int, list[float]] = {}
            for speed in own:
                by_period.setdefault(speed.period_us, []).append(speed.replies_rps)
            if not periods_agree(by_period):
                middles = ", ".join(
                    f"{median(values):.0f} replies/s in periods of {period / 1000:g} ms"
                    for period, values in sorted(by_period.items())
                )
                yield variant, "periods", f"schedulers={level}: {middles}"
        one, every = by_level["one"], by_level["all"]
        if not one or not every:
            continue
        rate = median(s.replies_rps for s in every) / median(s.replies_rps for s in one)
        most = most_speed_up(
            every[0].cpus, median(s.cost_ns for s in one), median(s.cost_ns for s in every)
        )
        if rate > BOUND * most:
            yield variant, "bound", f"{rate:.2f} times as fast, where replies allow {most:.2f}"


def periods_agree(speeds: Mapping[int, Sequence[float]]) -> bool:
    """Return whether the median speeds are alike whatever the period, `speeds` by its length."""
    middles = [median(values) for values in speeds.values() if values]
    return not middles or max(middles) <= (1 + PERIODS) * min(middles)


def most_speed_up(cpus: int, cost_of_one: float, cost_of_all: float) -> float:
    """Return the largest speed-up that so many CPUs can give.

    The costs are CPU time per reply, of one worker and of all: all CPUs together have so many times
    the time of one, and each reply takes the cost of all.
    """
    return cpus * cost_of_one / cost_of_all
