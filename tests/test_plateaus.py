"""A rate that was answered in full is no limit, also where higher ones were not."""

import math

import polars as pl
import pytest

from deathmatch.analysis import judging, reply_rates, selecting
from deathmatch.quantities.definitions import HIGHEST_REPLY_RATE
from deathmatch.quantities.quantity import RATE, REPLY, TOP, Points

RATES = (4000, 12000, 40000)
ROUNDS = (1, 2, 3)
ABOVE = judging.claimed_range(1, "above")
# What each server replies a second at each of RATES.
SWEEPS = {
    "rung": (4000, 12000, 8000),  # answered 12,000 in full: its limit is anywhere below 40,000
    "slow": (3990, 5000, 5000),
    "near": (4000, 11000, 12400),
    "fast": (4000, 12000, 39000 * 0.97),
    "open": (4000, 12000, 39990),
}


def sweep(server: str) -> pl.DataFrame:
    """Return the points of a server, each round a little other than the one before.

    By how much depends on the server: ratios that do not differ at all are no measurement.
    """
    slower = 1 + list(SWEEPS).index(server)
    return pl.DataFrame(
        [
            {
                "server": server,
                "n": n,
                RATE: rate,
                TOP: RATES[-1],
                REPLY: reply * (1 - n * slower % 11 / 2000),
            }
            for n in ROUNDS
            for rate, reply in zip(RATES, SWEEPS[server], strict=True)
        ]
    )


def peaks(server: str):
    variant = selecting.variant_of(sweep(server), Points.ALL)
    return variant.values(HIGHEST_REPLY_RATE)


@pytest.mark.parametrize(
    ("server", "limit"), [("rung", 40000), ("slow", None), ("near", None), ("open", math.inf)]
)
def test_a_limit_is_below_the_next_rate_that_was_offered(server, limit):
    assert reply_rates.below(sweep(server).filter(n=1)) == limit
    known = peaks(server)
    assert known.at_least == (frozenset(ROUNDS) if limit else frozenset())
    assert set(known.below.values()) == ({limit} if limit == 40000 else set())


@pytest.mark.parametrize(
    ("above", "below", "verdict"),
    [
        ("near", "rung", judging.UNREACHED),  # 1.03, and perhaps less than a third
        ("rung", "near", judging.UNREACHED),
        ("rung", "slow", judging.REPLICATED),
        ("slow", "rung", judging.NOT),
        ("open", "rung", judging.UNREACHED),
        ("near", "slow", judging.REPLICATED),
    ],
)
def test_a_direction_is_said_only_where_the_intervals_allow_it(above, below, verdict):
    part = judging.tested(judging.Part([peaks(above), peaks(below)], *ABOVE))
    assert part.verdict == verdict
    assert part.lacks == (judging.SATURATION if verdict == judging.UNREACHED else None)


def test_a_server_beyond_the_next_rate_is_faster():
    rung = peaks("rung")
    beyond = selecting.Values({n: 80000.0 + n for n in ROUNDS})
    ratio = judging.effect([beyond, rung], level=0.05)
    assert 1.9 < ratio.low <= 2.001 and ratio.high > 6
    part = judging.tested(judging.Part([beyond, rung], *ABOVE))
    assert part.verdict == judging.REPLICATED


def test_a_quotient_keeps_what_its_sides_may_be():
    share = peaks("rung").over(peaks("slow"))
    assert share.at_least == frozenset(ROUNDS) and share.below.keys() == set(ROUNDS)
    assert not share.unbounded and not share.at_most
    inverse = peaks("slow").over(peaks("rung"))
    assert inverse.at_most == frozenset(ROUNDS) and not inverse.at_least


def test_a_ranking_names_what_is_at_least():
    points = pl.concat([sweep("rung"), sweep("near"), sweep("slow"), sweep("open")])
    found = reply_rates.plateaus(points, ["server"])
    assert dict(found.select("server", "at_least").rows()) == {
        "rung": True, "near": False, "slow": False, "open": True,
    }  # fmt: skip
    assert reply_rates.ranking(found, "server") == "open > near > rung (at least) > slow"
