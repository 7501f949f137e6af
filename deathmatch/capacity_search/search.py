"""The search for a server's capacity: the next rate to offer, given the results of earlier probes.

A probe offers one rate for a short time. It is *over* if more than LATE_SHARE of what was due had
no answer within LIMIT_US, or if the client was the limit; otherwise it is *in time*. Errors and
time-outs are no criterion, as a deep queue hides a small overload from both for seconds.

1. The rate is doubled or halved until one is over and one is in time; then this bracket is
   bisected. A rate is over only if two probes in a row are: a single stall can make a probe late,
   and nothing makes one early.
2. A rate somewhat below the bracket, which must be in time, and one somewhat above it, which must
   be over, are offered before and after step 3.
3. Up-and-down trials between these two give the estimate: a step down after each that is over, a
   step up after each that is in time, so that most are near the rate at which half are over (Dixon
   and Mood 1948, A Method for Obtaining and Analyzing Sensitivity Data, Journal of the American
   Statistical Association 43).
4. If a capacity was found, shares of it are offered to measure the cost of a reply, and multiples
   of it last, as an overload.

If a rate of step 2 changes sides, or the trials leave the range or drift, other load decided: the
search begins again, and is refused after ROUNDS attempts. It is a pure function, so that its rates
can be derived again from the reports.
"""

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pvariance
from typing import Any, Literal

LIMIT_US = 10_000
# So late is a connection whose SYN was lost: it is sent again after a second.
LONG_US = 1_000_000
LATE_SHARE = 0.5
# A longer wait only takes time: the reply is late already.
TIMEOUT_S = 2
START_RPS, LEAST_RPS = 2000, 100
# The ratio at which bisection ends, and the default of the dataset's key `margin`.
BRACKET, MARGIN = 1.06, 1.08
# The ratio of successive rates of up-and-down trials.
STEP = 1.02
# In simulations with a knee 5 % wide, one search in a thousand drifts as far by chance.
DRIFT = STEP**2.5
# Dixon and Mood: the deviation of a single trial from the variance of the levels, both in steps. A
# variance below the least one does not determine it; the largest deviation that fits is taken.
SCALE, SHIFT, LEAST_VARIANCE = 1.62, 0.029, 0.3
# Student's t at 0.975, for the 22 or so of 24 trials that count.
T = 2.07
# A knee that is sharper than a step lies anywhere between two levels.
RESOLUTION = 0.5
ROUNDS = 3
# The share of `probe_s` that probes of doubling and bisection take.
COARSE = 0.5

FOUND, CLIENT, REFUSED = "found", "client's limit", "refused"
OUTCOMES = (FOUND, CLIENT, REFUSED)
OTHER_LOAD = "other load"
DOUBLE, BISECT, TRIAL = "double", "bisect", "up-down"
GOOD_BEFORE, OVER_BEFORE = "in time, before", "over, before"
GOOD_AFTER, OVER_AFTER = "in time, after", "over, after"
COST, OVERLOAD = "cost", "overload"
STEPS = (DOUBLE, BISECT, GOOD_BEFORE, OVER_BEFORE, TRIAL, GOOD_AFTER, OVER_AFTER, COST, OVERLOAD)


@dataclass(frozen=True)
class Offer:
    """The next probe: its rate and duration, and the step and round of the search.

    `share` is the rate's share of the capacity, if the rate was chosen by it.
    """

    rate_rps: int
    duration_s: float
    step: str
    round: int
    share: float | None = None


@dataclass(frozen=True)
class Result:
    """A probe's result: the share that was late, or None if it is unknown or the server failed."""

    late_share: float | None
    client_limited: bool

    @property
    def over(self) -> bool:
        """Whether the rate was more than the server, or the client, can handle."""
        return self.client_limited or self.late_share is None or self.late_share > LATE_SHARE


@dataclass(frozen=True)
class End:
    """The result of a search: a rate with its 95 % interval, or the reason why there is none."""

    outcome: Literal["found", "client's limit", "refused"]
    rate_rps: float | None = None
    low_rps: float | None = None
    high_rps: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class Estimate:
    """The rate at which half of the trials are over, its 95 % interval, and their drift.

    `drift` is the ratio of the mean level of the later half to that of the earlier half.
    """

    rate_rps: float
    low_rps: float
    high_rps: float
    drift: float


Probing = Generator[Offer, Result, Any]


def probing(asked: Mapping[str, Any]) -> Probing:
    """Yield each offer, receive its result, and return the End.

    `asked` has the keys of a dataset's `search`; older records have no `margin` and no
    `cost_shares`, and without an overload there is no `overload_shares`.
    """
    start, end = START_RPS, End(REFUSED)
    for number in range(1, ROUNDS + 1):
        bracket = yield from _bracket(asked, min(start, asked["most_rps"]), number)
        if isinstance(bracket, End):
            if not bracket.reason.startswith(OTHER_LOAD):
                return bracket
            end = bracket
            continue
        end = yield from _estimated(asked, *bracket, number)
        if end.outcome == FOUND:
            yield from _shares(asked, end.rate_rps, number)
        if end.outcome != REFUSED:
            return end
        start = bracket[0]
    return end


def replayed(
    asked: Mapping[str, Any], results: Sequence[Result]
) -> tuple[list[Offer], End | None]:  # fmt: skip
    """Return the offers of a search with these results, in order, and its end.

    If there is no end yet, the last offer still lacks its result. Results after the end are
    ignored.
    """
    running = probing(asked)
    offers = [next(running)]
    for result in results:
        try:
            offers.append(running.send(result))
        except StopIteration as ended:
            return offers, ended.value
    return offers, None


def load_of(step: str, load: Mapping[str, Any]) -> dict[str, Any]:
    """Return the load of a probe in a step, given the trial's.

    Its time-out is at most TIMEOUT_S, but an overload has the trial's own.
    """
    longest_s = math.inf if step == OVERLOAD else TIMEOUT_S
    return {**load, "timeout_s": min(longest_s, load["timeout_s"])}


def usual(asked: Mapping[str, Any]) -> tuple[int, float]:
    """Return the usual number of an undisturbed search's probes, and the seconds of their load.

    Doubling and bisection take some 11 probes in simulations.
    """
    coarse, decisive = 11, asked["probes"] + 6
    costs, overloads = (len(asked.get(f"{kind}_shares", ())) for kind in ("cost", "overload"))
    shares_s = costs * asked.get("cost_s", asked["probe_s"]) + overloads * asked.get(
        "overload_s", 0
    )
    probing_s = asked["probe_s"] * (COARSE * coarse + decisive)
    return coarse + decisive + costs + overloads, probing_s + shares_s


def overload(probe_s: float) -> float:
    """Return the multiple of a server's capacity at which LATE_SHARE of a probe is late.

    A queue with an input rate of r times its service rate delays requests by (r - 1) t after a time
    t (Kleinrock 1976, Queueing Systems 2, section 2.7: fluid approximation), so that those after
    LIMIT_US / (r - 1) are late.
    """
    return 1 + LIMIT_US / 1e6 / (probe_s * (1 - LATE_SHARE))


def _bracket(asked: Mapping[str, Any], start_rps: float, number: int) -> Probing:
    """Return a rate in time and one over, with a ratio of at most BRACKET, or an End without."""
    duration_s = asked["probe_s"] * COARSE
    good = over = None
    rate = start_rps
    while good is None or over is None:
        result = yield from _confirmed(Offer(round(rate), duration_s, DOUBLE, number))
        if result.over:
            over = rate
        else:
            good = rate
        if result.over and good is None and rate <= LEAST_RPS:
            if result.client_limited:
                return _other_load(f"it held up the client at {LEAST_RPS} req/s")
            return End(REFUSED, reason=f"late at {LEAST_RPS} req/s, the least that is offered")
        if not result.over and over is None and rate >= asked["most_rps"]:
            most = asked["most_rps"]
            reason = f"in time at {most} req/s, the most that it may offer: raise most_rps"
            return End(REFUSED, reason=reason)
        rate = max(rate / 2, LEAST_RPS) if result.over else min(2 * rate, asked["most_rps"])
    while over / good > BRACKET:
        middle = math.sqrt(good * over)
        result = yield from _confirmed(Offer(round(middle), duration_s, BISECT, number))
        good, over = (good, middle) if result.over else (middle, over)
    return good, over


def _estimated(asked: Mapping[str, Any], good: float, over: float, number: int) -> Probing:
    """Return the End by up-and-down trials, with the rates below and above confirmed twice."""
    margin, probe_s = asked.get("margin", MARGIN), asked["probe_s"]
    low, high, most = good / margin, over * margin, max(DRIFT, math.sqrt(margin))
    if lost := (yield from _kept(low, high, probe_s, (GOOD_BEFORE, OVER_BEFORE), number)):
        return lost
    rate, rates, results = math.sqrt(good * over), [], []
    for _ in range(asked["probes"]):
        rates.append(round(rate))
        results.append((yield Offer(rates[-1], probe_s, TRIAL, number)))
        rate = after(rate, results[-1].over)
        if not low <= rate <= high:
            side = "over" if rate < low else "in time"
            return _other_load(f"{rates[-1]} req/s came to be {side}")
    if lost := (yield from _kept(low, high, probe_s, (GOOD_AFTER, OVER_AFTER), number)):
        return lost
    found = estimate(rates, [result.over for result in results])
    if found is None:
        return _other_load("all trials ended alike")
    if not 1 / most <= found.drift <= most:
        return _other_load(f"the trials drifted by {100 * (found.drift - 1):+.0f} %")
    over_all = [result for result in results if result.over]
    limited = 2 * sum(result.client_limited for result in over_all) >= len(over_all)
    by = overload(probe_s)
    return End(
        CLIENT if limited else FOUND,
        found.rate_rps / by, found.low_rps / by, found.high_rps / by,
        "the client, not the server, was the limit" if limited else "",
    )  # fmt: skip


def after(rate_rps: float, over: bool) -> float:
    """Return the next rate of up-and-down trials."""
    return rate_rps / STEP if over else rate_rps * STEP


def estimate(rates_rps: Sequence[float], over: Sequence[bool]) -> Estimate | None:
    """Return the estimate by up-and-down trials, in their order; None if all ended alike.

    A level is a rate's logarithm, in steps. The estimate is the mean of the levels from the trial
    before the first change on, including the level that would come next (Brownlee, Hodges and
    Rosenblatt 1953, The Up-and-Down Method with Small Samples, Journal of the American Statistical
    Association 48). Its standard error is that of half as many values of a normal variable with
    Dixon and Mood's deviation.
    """
    change = next((place for place, outcome in enumerate(over) if outcome != over[0]), None)
    if change is None:
        return None
    used = [*rates_rps[change - 1 :], after(rates_rps[-1], over[-1])]
    levels = [math.log(rate) / math.log(STEP) for rate in used]
    half = len(levels) // 2
    deviation = SCALE * (max(pvariance(levels), LEAST_VARIANCE) + SHIFT)
    width = max(RESOLUTION, T * deviation * math.sqrt(2 / len(levels)))
    middle = fmean(levels)
    return Estimate(
        STEP**middle, STEP ** (middle - width), STEP ** (middle + width),
        STEP ** (fmean(levels[half:]) - fmean(levels[:half])),
    )  # fmt: skip


def _shares(asked: Mapping[str, Any], capacity_rps: float, number: int) -> Probing:
    """Offer shares and multiples of a capacity; their results change nothing."""
    cost_s = asked.get("cost_s", asked["probe_s"])
    steps = ((COST, "cost_shares", cost_s), (OVERLOAD, "overload_shares", asked.get("overload_s")))
    for step, shares, duration_s in steps:
        for share in asked.get(shares, ()):
            yield Offer(max(1, round(share * capacity_rps)), duration_s, step, number, share)


def _other_load(what: str) -> End:
    return End(REFUSED, reason=f"{OTHER_LOAD}, or a server that changes: {what}")


def _confirmed(offer: Offer) -> Probing:
    """Return the result of a rate, which is over only if two probes in a row are."""
    result = yield offer
    if result.over:
        result = yield offer
    return result


def _kept(
    low: float, high: float, probe_s: float, steps: tuple[str, str], number: int
) -> Probing:  # fmt: skip
    """Return an End if the low rate is not in time or the high one not over; otherwise None."""
    for rate, step, due in ((low, steps[0], False), (high, steps[1], True)):
        held = yield from _holds(Offer(round(rate), probe_s, step, number), due)
        if not held:
            now = "in time" if due else "over"
            return _other_load(f"{round(rate)} req/s was {now} when it was offered again")
    return None


def _holds(offer: Offer, over: bool) -> Probing:
    """Return whether a rate is over, or in time, as expected.

    It is in time after one probe in time, or after a failure and two such probes. It is over after
    two of three probes: near the knee, or by a stall, a rate is over now and then.
    """
    first = (yield offer).over
    if not over and not first:
        return True
    second = (yield offer).over
    if first == second:
        return first == over
    return (yield offer).over == over
