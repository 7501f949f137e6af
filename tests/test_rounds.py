"""A machine that drifts between rounds makes no difference between variants that are alike."""

import datetime as dt
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from deathmatch.analysis import by_trial, claims, judging, reply_rates, views
from deathmatch.analysis.by_trial import Values
from deathmatch.data import laws
from deathmatch.data.strict import dataset_checks
from deathmatch.data.strict.evidence import Trial
from deathmatch.paper.explore import variants
from deathmatch.quantities.definitions import CPU_PER_REPLY
from deathmatch.quantities.quantity import RATE, REPLY, TOP

DRIFT = 1 / 6
SIDES = {"short": 3, "long": 5}


def slowed(n: int) -> float:
    """Return how much slower the machine is in round n: a sixth from the first to the third."""
    return 1 + DRIFT * (n - 1) / 2


@pytest.fixture(scope="module")
def points() -> pl.DataFrame:
    """Two variants of one cost, of three and of five rounds, on a machine that slows down."""
    return pl.DataFrame(
        [
            {
                "server": name, "variant": "", "n": n, RATE: 1000, TOP: 1000,
                REPLY: 900 / slowed(n), "replies": 1000, "server_cpu_ns": int(1e8 * slowed(n)),
            }
            for name, last in SIDES.items()
            for n in range(1, last + 1)
        ]
    )  # fmt: skip


def test_a_ranking_has_no_false_difference(points):
    curve = reply_rates.curves(points, ["server"])
    costs = by_trial.medians(points, [CPU_PER_REPLY], ["server"])
    for frame, column in ((curve, "value"), (costs, CPU_PER_REPLY.name)):
        assert frame["trials"].to_list() == [3, 3]
        assert frame[column].n_unique() == 1
    apart = points.filter((pl.col("n") > 3) | (pl.col("server") == "short"))
    assert len(by_trial.shared_rounds(apart, ["server"])) == len(apart), "they share none"
    alone = reply_rates.curves(points.filter(server="long"), ["server"])
    assert alone["trials"].to_list() == [5] and alone["value"][0] < curve["value"][0]


def test_the_explorer_ranks_by_the_rounds_that_all_have(miniature):
    """In the miniature, a server of this experiment ran in two rounds."""
    experiment = views.Experiment(miniature, "single-thread")
    assert experiment.trials["n"].max() == 3
    shown = [
        row[CPU_PER_REPLY.name] for row in variants.rows(miniature, experiment.name, {}).variants
    ]
    assert max(quantity[3] for quantity in shown if quantity) == 2


def test_a_round_without_one_point_still_counts(miniature):
    c10k = views.Experiment(miniature, "c10k")
    steady = laws.steady(c10k.points)
    assert not set.intersection(
        *(set(mine["n"]) for mine in steady.partition_by("server", "variant"))
    )
    assert c10k.ranked(steady).equals(steady)


def test_a_claim_has_no_false_difference(points):
    sides = [
        Values(dict(by_trial.values(points.filter(server=name), CPU_PER_REPLY, []).rows()))
        for name in SIDES
    ]
    ratio = judging.effect(sides, level=0.05)
    assert ratio.trials == 3 and ratio.low <= 1 <= ratio.high
    assert ratio.high - ratio.low < DRIFT / 10
    assert [len(side) for side in claims.compared_values(judging.Part(sides, 1, 2))] == [3, 3]


def test_the_drift_is_shown(points):
    (row,) = by_trial.drifts({"planted": points}).to_dicts()
    assert row["variants"] == row["higher"] == 2 and row["lower"] == 0
    assert row["ratio"] == row["all_ratio"] == pytest.approx(1 + DRIFT)


def trial(server: str, n: int, minute: int) -> Trial:
    began = dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(minutes=minute)
    return Trial(f"data/mine/dynamic/{server}/x/{n}", Path(), {"started_at": began.isoformat()})


def test_a_batch_hours_after_its_rounds_is_rejected():
    of_rounds = [
        trial(name, n, 40 * n + place) for n in (1, 2, 3) for place, name in enumerate("abc")
    ]
    late = [trial("late", n, 300 + n) for n in (1, 2, 3)]
    assert list(dataset_checks.in_rounds(SimpleNamespace(trials=of_rounds))) == []
    found = list(dataset_checks.in_rounds(SimpleNamespace(trials=of_rounds + late)))
    assert [one.where for one in found] == [one.where for one in late]
    assert {one.severity for one in found} == {"reject"}
