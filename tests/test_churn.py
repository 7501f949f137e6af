"""How connections open: the rule for a steady pace on planted warm-ups, its record, ceilings."""

import numpy as np
import polars as pl
import pytest

from deathmatch.analysis import c10k_opening
from deathmatch.measure import churn
from deathmatch.plan import files, record

ROUNDS = np.arange(files.experiment("c10k").churn.rounds)
NOISE = 0.1
# Connections per second by round: steady at once, a JIT that gains four fifths, gains without end.
STEADY = np.full(len(ROUNDS), 2000.0)
WARMING = 744 * (1 - 0.8 * np.exp(-ROUNDS / 6))
NEVER = 300 * 1.06**ROUNDS


def simulated(truth: np.ndarray, runs: int = 400) -> list[int | None]:
    """Return after how many rounds each run was taken for steady; None for one that never was."""
    noise = np.random.default_rng(2012).normal(0, NOISE, (runs, len(truth)))
    found = []
    for rates in (truth * np.exp(noise)).tolist():
        rounds = (n for n in range(1, len(rates) + 1) if churn.steady(rates[:n]))
        found.append(next(rounds, None))
    return found


def test_a_steady_rate_is_found_within_half_of_the_rounds():
    found = simulated(STEADY)
    assert None not in found
    assert min(found) == churn.LEAST_ROUNDS and np.quantile(found, 0.95) <= len(ROUNDS) / 2


def test_a_warm_up_is_found_steady_once_little_is_left_to_gain():
    found = simulated(WARMING)
    assert found.count(None) <= len(found) / 100
    left = [1 - WARMING[n - 1] / WARMING[-1] for n in found if n]
    assert np.quantile(left, 0.95) < 0.1 < 1 - WARMING[churn.LEAST_ROUNDS - 1] / WARMING[-1]


def test_endless_growth_is_not_found_steady():
    found = simulated(NEVER)
    assert len(found) - found.count(None) <= len(found) / 100


def test_a_rate_that_only_scatters_little_is_not_steady_while_it_grows():
    """The coefficient of variation of five rounds is below a twentieth here all the time."""
    rates = [1000 * 1.02**n for n in range(30)]
    assert np.std(rates[-5:]) / np.mean(rates[-5:]) < 0.05
    assert not any(churn.steady(rates[:n]) for n in range(len(rates) + 1))


def test_no_rounds_and_rates_of_0_are_not_steady():
    assert not churn.steady([])
    assert not churn.steady([0.0] * churn.LEAST_ROUNDS)
    assert record.last_rate_cps([]) is None and record.last_rate_cps([1.0, 3.0]) == 2.0


def test_rounds_leave_ports_for_the_connections_that_are_measured():
    assert churn.rounds_that_fit(30, 1000, 10_000, 64_512) == 30
    assert churn.rounds_that_fit(30, 1000, 50_000, 64_512) == 14
    assert churn.rounds_that_fit(30, 1000, 70_000, 64_512) == 0


def point(server: str, not_opened: int) -> dict:
    return {"server": server, "variant": "v", "n": 1, "offered_rate_rps": 1000, "label": server,
            "environment": "unthrottled", "duration_us": 10_000_000, "connections": 1000,
            "outcome_completed": 1000 - not_opened, "outcome_not_opened": not_opened,
            "outcome_unfinished": 0}  # fmt: skip


def test_a_ceiling_of_messages_is_distinguished_from_a_slow_handshake():
    """Both use a CPU; the first answers 600 messages a second then and opens hardly any more."""
    points = pl.DataFrame([point("starved", 400), point("slow", 300), point("whole", 0),
                           point("sampled once", 300)])  # fmt: skip
    key = {"variant": "v", "n": 1, "offered_rate_rps": 1000}
    opened = {"starved": lambda s: 250 if s < 2 else 12, "slow": lambda s: 70,
              "whole": lambda s: 100, "sampled once": lambda s: 70}  # fmt: skip
    seconds = pl.DataFrame([
        key | {"server": server, "quantity": quantity, "since_start_s": s, "count": count,
               "lost": lost}
        for server, pace in opened.items()
        for s in range(10)
        for quantity, count, lost in (("handshake_time", pace(s), 0), ("latency", 610, 10))
    ])  # fmt: skip
    samples = pl.DataFrame([
        key | {"server": server, "time_us": 5_000_000 + 500_000 * at,
               "server_cpu_ns": 480_000_000 * at}
        for server in opened
        # `sampled once` has a sample at its beginning, and one in its last fifth.
        for at in ((0, 17) if server == "sampled once" else range(24))
    ])  # fmt: skip
    found = c10k_opening.ceilings(points, seconds, samples)
    slow, starved = found.to_dicts()
    assert (starved["label"], starved["held"], starved["starved"]) == ("starved", 600, True)
    assert (slow["label"], slow["starved"]) == ("slow", False)
    assert starved["message_rate_rps"] == 600 and starved["cpus"] == pytest.approx(0.96)
    assert starved["message_rate_cpu_rps"] == pytest.approx(625)
    assert (starved["opening_first_cps"], starved["opening_last_cps"]) == (250, 12)
    assert c10k_opening.ceilings_table(found)["held"].to_list() == [700, 600]


def test_levels_stand_side_by_side_only_where_there_are_several():
    shown = {
        "schedulers": "one", "run": "planned", "connections_opening_max": 128,
        "connection_timeouts": 0, "opening_rate_cps": 100.0, "message_latency_growth": 1.0,
        **{f"{what}_{q}_us": 1000 for what in ("handshake_time", "message_latency")
           for q in ("p50", "p99")},
    }  # fmt: skip
    points = pl.DataFrame([
        point("one", 0) | shown | {"opening": 128},
        point("two", 0) | shown | {"opening": 128},
        point("two", 0) | shown | {"opening": 10_000, "label": "two, at once"},
    ])  # fmt: skip
    assert c10k_opening.side_by_side(points)["label"].to_list() == ["two", "two, at once"]
