"""The reply rate in overload: at one rate, and no limit where that was answered in full."""

import polars as pl
import pytest

from deathmatch.analysis import judging, selecting
from deathmatch.analysis.by_trial import Values
from deathmatch.quantities.definitions import REPLY_RATE_OVERLOAD
from deathmatch.quantities.quantity import RATE, REPLY, TOP, Points

RATES = (4000, 12000, 40000)
ROUNDS = (1, 2, 3)
NO_LAW = pl.lit([], dtype=pl.List(pl.String))
ABOVE = judging.claimed_range(1, "above")
# Replies a second of each server at each of RATES.
SWEEPS = {
    "rung": (4000, 12000, 8000),  # answered 12,000 in full: its limit is anywhere below 40,000
    "slow": (3990, 5000, 5000),
    "near": (4000, 11000, 12400),
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


def in_overload(server: str) -> Values:
    return selecting.variant_of(sweep(server), Points.TRIALS).values(REPLY_RATE_OVERLOAD)


@pytest.mark.parametrize(
    ("above", "below", "verdict"),
    [
        ("near", "rung", judging.REPLICATED),  # at 40,000, whatever a lower rate shows
        ("slow", "rung", judging.NOT),
        ("open", "rung", judging.REPLICATED),  # at least 40,000
        ("rung", "open", judging.NOT),
        ("open", "open", judging.UNREACHED),
    ],
)
def test_a_verdict_needs_intervals_that_allow_it(above, below, verdict):
    part = judging.tested(judging.Part([in_overload(above), in_overload(below)], *ABOVE))
    assert part.verdict == verdict
    assert part.lacks == (judging.SATURATION if verdict == judging.UNREACHED else None)


def test_a_quotient_keeps_what_its_sides_may_be():
    share = in_overload("open").over(in_overload("slow"))
    assert share.at_least == frozenset(ROUNDS) and not share.at_most
    inverse = in_overload("slow").over(in_overload("open"))
    assert inverse.at_most == frozenset(ROUNDS) and not inverse.at_least


@pytest.mark.parametrize(("others", "top_rps"), [({12000, 40000}, 40000), ({12000}, 12000)])
def test_an_overload_is_at_the_highest_rate_of_all(others, top_rps):
    sides = [sweep("slow"), sweep("near").filter(pl.col(RATE).is_in(others))]
    found = selecting.at_highest_rate([selecting.variant_of(side, Points.TRIALS) for side in sides])
    assert {rate for side in found for rate in side.points[RATE]} == {top_rps}
    apart = [side.filter(pl.col(RATE) == rate) for side, rate in zip(sides, RATES)]
    lone, _ = selecting.at_highest_rate(
        [selecting.variant_of(side, Points.TRIALS) for side in apart]
    )
    assert not lone.values(REPLY_RATE_OVERLOAD) and not lone.values(REPLY_RATE_OVERLOAD).hidden
    limited = sides[1].with_columns(client_limited=pl.col(RATE) == top_rps, report=None)
    limited = selecting.variant_of(limited.with_columns(laws_broken=NO_LAW), Points.VALID)
    hidden = selecting.at_highest_rate([found[0], limited])[1].values(REPLY_RATE_OVERLOAD)
    assert hidden.hidden and not hidden
