"""Each finding on planted datasets: it holds, it does not, it is too noisy, or it is not there."""

import re
from itertools import count

import polars as pl
import pytest

from deathmatch.analysis import findings, judging, selecting
from deathmatch.analysis.findings import FAILS, HOLDS, NOT_MEASURED, OPEN
from deathmatch.paper.charts import findings as charts
from deathmatch.quantities.quantity import RATE, REPLY

FINDINGS = {finding.name: finding for finding in findings.load()}
ROUNDS = (1, 2, 3)
# Of the rounds of a sound dataset, and of one that repeats nothing.
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
}  # fmt: skip
# What the study never prints.
NEVER = re.compile(r"\binf|nan|None|\b1 of 1\b|\(\)|\{|\}|interval to|: *$|: *\.")


@pytest.fixture
def plant(monkeypatch):
    """Return what plants points, by dataset and experiment, in place of all tables."""

    def planted(points: dict, trials: dict | None = None) -> None:
        number = next(fresh)
        monkeypatch.setattr(findings, "_points", _table(points, number))
        monkeypatch.setattr(findings, "_trials", _table(trials or {}, number))

    fresh = count()
    return planted


def _table(frames: dict, number: int):
    return lambda dataset, experiment: frames.get((dataset, experiment))


def sides(finding: findings.Finding) -> dict[tuple, pl.DataFrame]:
    """Return the real points of each selector of a finding, at one rate, in three rounds."""
    known = next(each for each in findings.of_reference() if each.finding == finding)
    frames = {}
    for comparison in finding.comparisons:
        for side in comparison.sides:
            for selector in side:
                frame = selecting.selected(
                    known.dataset, finding.experiment, selector, table=findings._points
                )
                if frame is None:
                    continue
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
    finding, frames = FINDINGS[name], sides(FINDINGS[name])
    set_to: dict[tuple, float] = {}
    for place, comparison in enumerate(finding.comparisons):
        target = inside(comparison) if place or first is None else first
        rounds = STEADY if place else spread
        chosen = [next(one for one in side if _key(one) in frames) for side in comparison.sides]
        keys = [(_key(selector), comparison.statistic) for selector in chosen]
        if len(keys) == 2:
            below = set_to.get(keys[1])
            if below is None:
                below = set_to[keys[0]] / target if keys[0] in set_to else 1000.0
            set_to.setdefault(keys[1], below)
            frames[keys[1][0]] = _set(frames[keys[1][0]], comparison, below, NEARLY)
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
        assert not NEVER.search(" ".join([one.sentence, one.number, one.verdict]))
