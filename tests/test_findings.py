"""Each finding on planted datasets: it holds, it does not, it is too noisy, or it is not there."""

import re
from contextlib import ExitStack
from dataclasses import replace
from functools import cache

import polars as pl
import pytest
from conftest import MINIATURE, instead

from deathmatch.analysis import claims, findings, judging, published, selecting
from deathmatch.analysis.findings import FAILS, HOLDS, NOT_MEASURED, OPEN
from deathmatch.analysis.ledger import Verdict
from deathmatch.analysis.searched import SHARE
from deathmatch.analysis.stats import Interval
from deathmatch.capacity_search import search
from deathmatch.paper.charts import findings as charts
from deathmatch.quantities.quantity import RATE, REPLY

FINDINGS = {finding.name: finding for finding in findings.load()}
ROUNDS = (1, 2, 3)
# Factors of the rounds of a sound dataset, and of one whose rounds differ widely.
STEADY, NEARLY, NOISY = (0.99, 1.0, 1.01), (1.004, 1.0, 0.997), (0.2, 1.0, 5.0)
# Where the numbers of a quantity come from.
COLUMNS = {
    "reply_rate_rps": lambda value: {REPLY: value},
    "cpu_us_per_reply": lambda value: {"server_cpu_ns": 1e6 * value, "replies": 1000},
    "connection_time_p99_us": lambda value: {
        f"connection_time_{name}_us": value for name in ("p99", "p50")
    },
    "message_latency_p95_us": lambda value: {
        "message_latency_p95_us": value, "messages_due": 1_000_000,
    },
    "connections_held": lambda value: {"outcome_completed": value},
    "bytes_per_message": lambda value: {"rss_bytes": value * pl.col("messages")},
    "capacity_rps": lambda value: {"capacity_rps": value},
}  # fmt: skip
# Text that the study must never print.
NEVER = re.compile(r"\binf|nan|None|\b1 of 1\b|\(\)|\{|\}|interval to|: *$|: *\.")


@pytest.fixture
def plant(miniature):
    """Return what plants points, by dataset and experiment, in place of all tables."""
    with ExitStack() as planted:

        def plant(rows: dict) -> None:
            planted.close()
            given = {
                (*key, "probes" if "probe" in frame.columns else "points"): frame
                for key, frame in rows.items()
            }
            planted.enter_context(instead(given or {("mine", "", "points"): None}))

        yield plant


@cache
def sides(name: str) -> dict[tuple, pl.DataFrame]:
    """Return the real points of each selector of a finding, at one rate, in three rounds.

    Of capacities and shares of them they are the ends of searches, and the probes at that share.
    """
    finding = FINDINGS[name]
    frames = {}
    for comparison in finding.comparisons:
        for selector in comparison.sides:
            if comparison.statistic == "capacity_rps" or SHARE in selector:
                probes = selecting.selected(
                    MINIATURE.name, finding.experiment, selector, selecting.probes
                )
                share = selector.get(SHARE)
                of_it = (
                    pl.col("outcome") == search.FOUND
                    if share is None
                    else ((pl.col(SHARE) == share) & (pl.col("step") == search.COST))
                )
                chosen = probes.filter(of_it, pl.col("n").is_in(ROUNDS))
                frames[_key(selector)] = chosen.with_columns(client_limited=False)
                continue
            frame = selecting.selected(MINIATURE.name, finding.experiment, selector)
            at = selector.get(RATE)
            if RATE in frame.columns:
                offered = frame.filter(pl.col("duration_us") >= 10**6 * comparison.least_s)
                rate = max(offered[RATE]) if at is None else at
                frame = offered.filter(pl.col(RATE) == rate).with_columns(
                    pl.lit(5000 if at is None else at, pl.Int64).alias(RATE)
                )
            frame = frame.unique("n", keep="first") if RATE in frame.columns else frame
            frames[_key(selector)] = _sound(frame.filter(pl.col("n").is_in(ROUNDS)))
    return frames


def _key(selector: dict) -> tuple:
    return tuple(sorted(selector.items()))


def _sound(frame: pl.DataFrame) -> pl.DataFrame:
    """Return points that all count."""
    known = {"client_limited": False, "limit": "none", "report": "whole", "course": "steady"}
    kinds = {"laws_broken": pl.lit([], frame.schema.get("laws_broken"))}
    there = {name: pl.lit(value) for name, value in known.items()} | kinds
    return frame.with_columns(**{name: to for name, to in there.items() if name in frame.columns})


def inside(comparison: findings.Comparison) -> float:
    """Return a value within the bounds of a comparison."""
    low, high = comparison.low, comparison.high
    if comparison.statistic == "connections_held":
        return 10_000
    if low == -judging.INFINITE:
        return high / 2
    return 2 * low if high == judging.INFINITE else (low * high) ** 0.5


def outside(comparison: findings.Comparison) -> float:
    """Return a value on the other side of a bound."""
    low, high = comparison.low, comparison.high
    return high * 2 if low == -judging.INFINITE else low / 2


def written(name: str, first: float | None, spread: tuple = STEADY) -> pl.DataFrame:
    """Return points of a finding: its first comparison has a value, all others hold."""
    finding, frames = FINDINGS[name], dict(sides(name))
    set_to: dict[tuple, float] = {}
    for place, comparison in enumerate(finding.comparisons):
        target = inside(comparison) if place or first is None else first
        rounds = STEADY if place else spread
        keys = [(_key(selector), comparison.statistic) for selector in comparison.sides]
        if len(keys) == 2:
            below = set_to.get(keys[1])
            if below is None:
                known = keys[0] in set_to
                below = set_to[keys[0]] / target if known else 1000.0
                # A ratio that does not differ at all between rounds is no measurement.
                spread_of_b = STEADY if known else NEARLY
                frames[keys[1][0]] = _set(frames[keys[1][0]], comparison, below, spread_of_b)
                set_to[keys[1]] = below
            target = below * target
        if keys[0] not in set_to:
            set_to[keys[0]] = target
            frames[keys[0][0]] = _set(frames[keys[0][0]], comparison, target, rounds)
    return pl.concat(list(frames.values()), how="diagonal_relaxed").unique(maintain_order=True)


def _set(frame: pl.DataFrame, comparison, value: float, rounds: tuple) -> pl.DataFrame:
    counts = comparison.statistic == "connections_held"
    factor = pl.lit(1.0)
    for n, times in zip(ROUNDS, rounds, strict=True):
        factor = pl.when(pl.col("n") == n).then(1.0 if counts else times).otherwise(factor)
    known = COLUMNS[comparison.statistic](value)
    return frame.with_columns(
        **{
            column: (factor if column != "replies" and column != "messages_due" else 1) * to
            for column, to in known.items()
        }
    )


def result(plant, name: str, points: pl.DataFrame) -> findings.Result:
    finding = FINDINGS[name]
    plant({("mine", finding.experiment): points})
    return findings._result("mine", finding)


@pytest.mark.parametrize("name", FINDINGS)
def test_a_finding_holds_does_not_or_is_too_noisy(plant, name):
    first = FINDINGS[name].comparisons[0]
    cases = [written(name, inside(first)), written(name, outside(first)),
             written(name, outside(first), NOISY)]  # fmt: skip
    holds, fails, noisy = (result(plant, name, points) for points in cases)
    assert (holds.standing, holds.why) == (HOLDS, "")
    assert fails.standing == FAILS and "was expected" in fails.why
    assert noisy.standing == OPEN and "too noisy" in noisy.why
    for one in (holds, fails, noisy):
        assert one.number and one.shown[0].interval.trials == len(ROUNDS)
        assert not NEVER.search(" ".join([one.finding.sentence, one.number, one.verdict]))


def texts(found: list[findings.Result]) -> str:
    """Return every text that a report or the paper takes from findings."""
    parts = [findings.headline(found)]
    for one in found:
        parts += [one.said, one.in_words, one.number, one.verdict]
        parts += [part for shown in one.shown for part in (shown.what, shown.where, shown.why)]
    return "\n".join(parts)


def spoiled(name: str, how: str) -> pl.DataFrame:
    """Return points of a finding that holds, spoiled in one way."""
    points = written(name, None)
    if how == "one trial":
        return points.filter(n=1)
    ends = {"nothing counts": search.CLIENT, "nothing was answered": search.REFUSED}
    if how in ends and "probe" in points.columns:
        points = points.with_columns(
            outcome=pl.when(outcome=search.FOUND).then(pl.lit(ends[how])).otherwise("outcome")
        )
    if how == "nothing counts" and "client_limited" in points.columns:
        return points.with_columns(client_limited=True, limit=pl.lit("client"))
    if how == "nothing was answered":
        counted = [name for name in (REPLY, "replies", "outcome_completed", "rss_bytes")
                   if name in points.columns]  # fmt: skip
        return points.with_columns(pl.col(counted) * 0)
    if how == "shorter points" and "duration_us" in points.columns:
        return points.with_columns(duration_us=pl.lit(1_500_000, pl.Int64))
    return points


@pytest.mark.parametrize(
    "how",
    ["one trial", "nothing counts", "nothing was answered", "shorter points", "no table"],
)
def test_findings_without_enough_data_stay_open_and_say_why(plant, how):
    points = {name: spoiled(name, how) for name in FINDINGS}
    found = []
    for name, finding in FINDINGS.items():
        plant({} if how == "no table" else {("mine", finding.experiment): points[name]})
        found.append(findings._result("mine", finding))
    assert not NEVER.search(texts(found)), NEVER.search(texts(found))
    for one in found:
        lasting = how == "shorter points" and not one.finding.comparisons[0].least_s
        stored = how in ("nothing counts", "shorter points") and one.finding.experiment == "storage"
        if how == "nothing was answered" and one.finding.experiment == "c10k":
            assert one.standing == FAILS and "0 in 3 trials" in one.why
        elif not (lasting or stored):
            assert one.standing in (OPEN, NOT_MEASURED) and one.why, one
        elif not one.why:
            assert one.standing == HOLDS
        assert one.standing == HOLDS or f"{one.finding.sentence}?" in one.said
    # A chart has what has a number, and nothing endless.
    for one in found:
        drawn = charts.rows(one, one).drop("what", "of")
        assert drawn.select(pl.all().is_infinite().any().fill_null(False)).row(0) == (False,) * 3


def test_points_of_another_client_count_where_there_are_no_others(plant):
    """As those of `quick`, whose backlog is measured by roundtrip alone."""
    points = written("static_cpu", None)
    renamed = points.with_columns(variant=pl.col("variant") + ",load_generator=roundtrip")
    assert result(plant, "static_cpu", renamed).standing == HOLDS
    absent = renamed.filter(pl.col("server") != "yaws")
    mixed = pl.concat([points.filter(server="yaws"), renamed.filter(server="nginx")])
    for frame in (absent, mixed):
        one = result(plant, "static_cpu", frame)
        assert one.standing in (OPEN, NOT_MEASURED) and "is not in this dataset" in one.why


def test_findings_and_claims_are_one_family_of_tests(plant):
    """An open finding is a test, too: with it, a verdict may become fragile."""
    claim = published.claims()[0]
    verdict = Verdict(judging.REPLICATED, Interval(3, 2.0, 1.1, 3.0), error=0.03)
    entry = replace(claims.entry("never-measured", claim), then=verdict, now=verdict, same=True)
    noisy = result(plant, "static_cpu", written("static_cpu", 1.6, NOISY))
    assert noisy.standing == OPEN and noisy.is_tested and noisy.error is None
    ((alone,), _), ((beside,), _) = claims.marked([entry]), claims.marked([entry], [noisy])
    assert alone.now.fragile == "" and beside.now.fragile.startswith("fragile")
    holds = result(plant, "static_cpu", written("static_cpu", None))
    marked = replace(holds, fragile="fragile (Holm)")
    assert all("fragile (Holm)" in text for text in (marked.verdict, marked.said))
    assert findings.headline([holds, marked]) == "Two findings: two hold (one fragile)"
