"""A server's capacity by search: which rate to offer next, given the results of the probes so far.

A probe offers one rate for a moment. It is *over* if more than LATE_SHARE of what was due had no
answer within LIMIT_US, or if the client was the limit. Errors and time-outs alone would not do: a
deep queue hides an overload of some per cent from both for seconds.

1. The rate is doubled or halved until one is over and one is not, then bisected. Only two probes in
   a row make a rate be over: a single stall makes one late, and nothing makes one early.
2. A rate somewhat lower, which is in time, and one somewhat higher, which is over, are offered now
   and again at the end.
3. Up-and-down trials between these two give the estimate: a step down after each that is over, a
   step up after each that is not, so that most are offered near the rate at which half are over
   (Dixon and Mood 1948, A Method for Obtaining and Analyzing Sensitivity Data, Journal of the
   American Statistical Association 43).
4. Shares of a capacity that was found are offered then, to see what a reply costs there, and
   multiples of it last, as an overload.

If the two change sides, or the trials leave them or drift, something else than the rate decided:
what was found is thrown away, and the search begins again; after ROUNDS times it is refused. Pure,
so that the rates can be derived again from the reports.
"""

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pvariance
from typing import Any, Literal

LIMIT_US = 10_000
# Lateness of another kind: a connection whose SYN was lost is sent again after a second.
LONG_US = 1_000_000
LATE_SHARE = 0.5
# A reply that takes longer than this is late anyway; a longer wait only takes time.
TIMEOUT_S = 2
START_RPS, LEAST_RPS = 2000, 100
# Where bisection ends, and how far beyond it the two rates are that are offered again.
BRACKET, MARGIN = 1.06, 1.08
# The ratio of two rates of up-and-down trials.
STEP = 1.02
# Simulated with a knee 5 % wide, one search in a thousand drifts as far by chance.
DRIFT = STEP**2.5
# Dixon and Mood: the deviation of a single trial from the levels' variance, both in steps; below
# such a variance the levels do not tell it, and it is taken for the largest that fits.
SCALE, SHIFT, LEAST_VARIANCE = 1.62, 0.029, 0.3
# Student's t for the 22 trials or so that are left of 24; 0.975 of it on either side.
T = 2.07
# A knee that is sharper than a step lies anywhere between two levels.
RESOLUTION = 0.5
ROUNDS = 3
# The first probes are to find the place only.
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
    """What the next probe offers: a rate, for how long, in which step of which round.

    `share` is the rate's share of the capacity, where it was chosen so.
    """

    rate_rps: int
    duration_s: float
    step: str
    round: int
    share: float | None = None


@dataclass(frozen=True)
class Result:
    """A probe's result: the share that was late, None if it is unknown or the server failed."""

    late_share: float | None
    client_limited: bool

    @property
    def over(self) -> bool:
        """Whether it was more than the server, or the client, can do."""
        return self.client_limited or self.late_share is None or self.late_share > LATE_SHARE


@dataclass(frozen=True)
class End:
    """The result of a search: a rate with its 95 % interval, or why there is none."""

    outcome: Literal["found", "client's limit", "refused"]
    rate_rps: float | None = None
    low_rps: float | None = None
    high_rps: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class Estimate:
    """The rate at which half are over, its 95 % interval, and how far the trials drifted.

    `drift` is the mean level of the later half over that of the earlier half, as a ratio.
    """

    rate_rps: float
    low_rps: float
    high_rps: float
    drift: float


Probing = Generator[Offer, Result, Any]


def probing(asked: Mapping[str, Any]) -> Probing:
    """Yield what to offer, take the result of each, and return the End.

    `asked` has the keys of a dataset's `search`; records of before they were keys have no `margin`
    and no `cost_shares`, and without an overload there is no `overload_shares`.
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
    """Return what a search with these results offers, in order, and its end.

    Without an end, the last offer is the one whose result is missing; results after the end are
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
    """Return the load of a probe in a step, given that of the trial.

    Its time-out is TIMEOUT_S at most; an overload has the trial's own.
    """
    longest_s = math.inf if step == OVERLOAD else TIMEOUT_S
    return {**load, "timeout_s": min(longest_s, load["timeout_s"])}


def usual(asked: Mapping[str, Any]) -> tuple[int, float]:
    """Return how many probes a search makes that nothing disturbs, about, and for how long.

    In seconds, of load alone. Doubling and bisection take some 11 probes, as simulated.
    """
    coarse, decisive = 11, asked["probes"] + 6
    costs, overloads = (len(asked.get(f"{kind}_shares", ())) for kind in ("cost", "overload"))
    shares_s = costs * asked.get("cost_s", asked["probe_s"]) + overloads * asked.get(
        "overload_s", 0
    )
    probing_s = asked["probe_s"] * (COARSE * coarse + decisive)
    return coarse + decisive + costs + overloads, probing_s + shares_s


def overload(probe_s: float) -> float:
    """Return at which multiple of its capacity a server has LATE_SHARE of a probe late.

    A queue that is fed at r times the rate at which it is served has grown to (r - 1) t after t
    (Kleinrock 1976, Queueing Systems 2, section 2.7: fluid approximation): late are those after
    LIMIT_US / (r - 1).
    """
    return 1 + LIMIT_US / 1e6 / (probe_s * (1 - LATE_SHARE))


def _bracket(asked: Mapping[str, Any], start_rps: float, number: int) -> Probing:
    """Return a rate in time and one over, at most BRACKET apart; an End if there is none."""
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
    """Return what up-and-down trials between two rates come to, if these stay what they are."""
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
    """Return what up-and-down trials tell, in their order; None if all of them ended alike.

    A level is a rate's logarithm, in steps. The estimate is the mean of the levels from the trial
    before the first change on, with the one that would come next (Brownlee, Hodges and Rosenblatt
    1953, The Up-and-Down Method with Small Samples, Journal of the American Statistical
    Association 48). Its standard error is that of as many trials of a normal variable of Dixon and
    Mood's deviation, of which one outcome has half.
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
    """Return the result of a rate: over only if two probes in a row are."""
    result = yield offer
    if result.over:
        result = yield offer
    return result


def _kept(
    low: float, high: float, probe_s: float, steps: tuple[str, str], number: int
) -> Probing:  # fmt: skip
    """Return the End if the low rate is in time no more, or the high one not over; else None."""
    for rate, step, due in ((low, steps[0], False), (high, steps[1], True)):
        held = yield from _holds(Offer(round(rate), probe_s, step, number), due)
        if not held:
            now = "in time" if due else "over"
            return _other_load(f"{round(rate)} req/s was {now} when it was offered again")
    return None


def _holds(offer: Offer, over: bool) -> Probing:
    """Return whether a rate is over, or not, as it should be.

    In time, it shows that at once, or twice after a failure. To be over, it must be so two times of
    three: near its knee, or by a stall, a rate is over now and then.
    """
    first = (yield offer).over
    if not over and not first:
        return True
    second = (yield offer).over
    if first == second:
        return first == over
    return (yield offer).over == over
