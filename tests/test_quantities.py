"""One quantity has one number: on a planted dataset, every page that names it shows the same."""

import dataclasses
from statistics import median

import polars as pl
import pytest
from conftest import read_tables_anew
from plant import write

from deathmatch.analysis import (
    by_trial,
    c10k,
    claims,
    comparing,
    judging,
    paired,
    readiness,
    selecting,
    views,
)
from deathmatch.analysis.comparison import Comparison
from deathmatch.data import table_files, tables
from deathmatch.paper.explore import variants
from deathmatch.plan import files
from deathmatch.quantities.definitions import CPU_PER_REPLY
from deathmatch.quantities.quantity import RATE, REPLY, Points

NAME = CPU_PER_REPLY.name
# CPU time of one reply in µs, by server and rate. MochiWeb was not offered the highest rate.
COSTS = {
    "nginx": {1000: 20.0, 2000: 15.0, 10_000: 10.0, 40_000: 5.0},
    "mochiweb": {1000: 300.0, 2000: 240.0, 10_000: 100.0},
}
DURATION_S = 2
TRIALS = 3


def point(experiment: str, server: str, rate: int, cost_us: float, n: int, **more) -> dict:
    """Return a point whose replies are all that was offered; its cost grows with the trial."""
    replies = rate * DURATION_S
    factors = files.experiment(experiment).factors
    known = {
        "server": server, "title": files.server(server).title, "variant": server, "n": n,
        RATE: rate, "replies": replies,
        "duration_us": DURATION_S * 1_000_000, REPLY: float(rate), "report": "whole",
        "server_state": "ran", "client_state": "exit 0", "client_limited": False,
        "server_cpu_ns": round(cost_us * 1000 * replies * (1 + n / 100)),
        "context_switches": 2 * replies, "interrupts": replies, "server_rss_bytes_max": n * 10**6,
    }  # fmt: skip
    return {name: factor.default for name, factor in factors.items()} | known | more


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """Write a dataset with the experiments static, readiness and c10k."""
    monkeypatch.setattr(table_files, "ROOT", tmp_path)
    rows = {
        "static": [
            point("static", server, rate, cost, n, configuration="tuned")
            for server, costs in COSTS.items()
            for rate, cost in costs.items()
            for n in range(1, TRIALS + 1)
        ],
        "readiness": [
            point("readiness", "c-readiness", 200, cost, n, readiness=mechanism, variant=mechanism)
            for mechanism, cost in (("poll", 60.0), ("epoll", 30.0))
            for n in range(1, TRIALS + 1)
        ],
        "c10k": [
            point("c10k", "ws-null", 10_000, 40.0, n, environment="unthrottled", schedulers="one")
            for n in range(1, TRIALS + 1)
        ],
    }
    for experiment, points in rows.items():
        write(tmp_path, "planted", experiment, points)
    yield
    read_tables_anew()


def pages() -> dict[str, float]:
    """Return the CPU per reply of one variant on each page: nginx, else C with poll, or ws-null."""
    static = views.Experiment("planted", "static")
    title = static.points.filter(server="nginx")["label"][0]
    chapter = by_trial.medians(static.valid_points, [CPU_PER_REPLY], ["label"])
    explored = variants.rows("planted", "static", {})
    [shown] = [row for row in explored.variants if row["server"] == "nginx"]
    one = Comparison(statistic=NAME, a={"server": "nginx", "configuration": "tuned"}, low=1)
    stated = comparing.effect("planted", "static", one)
    decided = comparing.judged("planted", "static", (one,))
    [side] = claims._sides("planted", "static", decided)
    ready = views.Experiment("planted", "readiness")
    [poll] = [
        row for row in variants.rows("planted", "readiness", {}).rates if row["variant"] == "poll"
    ]
    level = readiness.at_level(
        readiness.cost_levels(readiness.steady_points(ready.valid_points)), "C", "poll", 0
    )
    trials = [
        paired.Measured(
            1, place, "AB"[place % 2], ready.points.filter(variant="poll", n=1 + place % 3)
        )
        for place in range(4)
    ]
    [ab] = paired.rows(trials, NAME).filter(pl.col("statistic") == NAME).to_dicts()
    sockets = views.Experiment("planted", "c10k").valid_points
    return {
        "table of the chapter": chapter.filter(label=title)[NAME][0],
        "explorer": shown[NAME][0],
        "claims": stated.estimate,
        "side of a claim": side.interval.estimate,
        "explorer at a rate": poll[NAME][0],
        "chapter at a rate": level.cost_us.estimate,
        "compare": ab["a_median"],
        "chapter of WebSockets": c10k.connection_costs(sockets)["cpu_us"][0],
    }


def pooled(server: str, rates: list[int] | None = None) -> float:
    """Return the median over trials of CPU time over replies of these rates, by hand."""
    costs = {rate: COSTS[server][rate] for rate in rates or COSTS[server]}
    spent = sum(cost * rate for rate, cost in costs.items()) / sum(costs)
    return median(spent * (1 + n / 100) for n in range(1, TRIALS + 1))


def test_the_same_words_have_the_same_number_on_every_page(planted, monkeypatch):
    shown = pages()
    sweep = ("table of the chapter", "explorer", "claims", "side of a claim")
    rate = ("explorer at a rate", "chapter at a rate")
    sockets = ("chapter of WebSockets",)
    for names, due in ((sweep, pooled("nginx")), (rate, 60 * 1.02), (sockets, 40 * 1.02)):
        assert {name: shown[name] for name in names} == pytest.approx(
            dict.fromkeys(names, due), rel=1e-4
        )
    # Side A has trials 1 and 3.
    assert shown["compare"] == pytest.approx(60 * 1.02)
    # A changed definition, twice what it was, changes every page.
    of_trial = CPU_PER_REPLY.of_trial
    doubled = dataclasses.replace(of_trial, scale=2 * of_trial.scale)
    monkeypatch.setitem(vars(CPU_PER_REPLY), "of_trial", doubled)
    assert pages() == pytest.approx({name: 2 * value for name, value in shown.items()}, rel=1e-4)


def test_two_variants_are_compared_at_rates_that_both_have(planted):
    shared = sorted(COSTS["mochiweb"])
    due = pooled("mochiweb") / pooled("nginx", shared)
    points = views.Experiment("planted", "static").valid_points
    labels = [points.filter(server=server)["label"][0] for server in ("mochiweb", "nginx")]
    found = by_trial.ratio(points, CPU_PER_REPLY, *labels)
    assert found.estimate == pytest.approx(due, rel=1e-4)
    a, b = ({"server": name, "configuration": "tuned"} for name in ("mochiweb", "nginx"))
    one = Comparison(statistic=NAME, a=a, b=b, low=1)
    assert comparing.effect("planted", "static", one).estimate == pytest.approx(due, rel=1e-4)
    sides = claims._sides("planted", "static", comparing.judged("planted", "static", (one,)))
    assert sides[0].interval.estimate / sides[1].interval.estimate == pytest.approx(due, rel=1e-4)
    # Both answer their highest common rate in full: neither is overloaded.
    of_overload = one.model_copy(update={"statistic": "reply_rate_overload_rps"})
    overload = comparing.judged("planted", "static", (of_overload,))
    assert (overload.verdict, overload.lacks) == (judging.UNREACHED, judging.SATURATION)


def test_rates_are_shared_within_a_block_or_by_all_trials():
    def frame(rates: dict[int, list[int]]) -> pl.DataFrame:
        rows = [(n, rate) for n, all_rates in rates.items() for rate in all_rates]
        return pl.DataFrame(rows, schema={"n": pl.Int64, RATE: pl.Int64}, orient="row")

    paired = [frame({1: [10, 20, 30], 2: [10, 20]}), frame({1: [10, 20], 2: [20, 30]})]
    expected = [(1, 10), (1, 20), (2, 20)]
    assert [side.rows() for side in by_trial.at_shared_rates(paired)] == [expected, expected]
    apart = [frame({1: [10, 20]}), frame({2: [20, 30], 3: [20]})]
    assert [side.rows() for side in by_trial.at_shared_rates(apart)] == [
        [(1, 20)], [(2, 20), (3, 20)],
    ]  # fmt: skip
    unpaired = by_trial.at_shared_rates(paired, paired=False)
    assert [side[RATE].unique().to_list() for side in unpaired] == [[20], [20]]


def test_times_are_those_of_the_client_that_measured_the_points(tmp_path, monkeypatch):
    """Points and times of another client lack it in their variant's name."""
    monkeypatch.setattr(table_files, "ROOT", tmp_path)
    name = "configuration=tuned,load_generator=roundtrip"
    one = point("static", "nginx", 1000, 20.0, 1, configuration="tuned", variant=name)
    folder = write(tmp_path, "planted", "static", [one])
    taken = one | {"quantity": "connection_time", "time_us": 500, "count": 1000}
    columns = tables.columns("static", "times")
    times = pl.DataFrame([{key: taken[key] for key in columns}], schema=columns)
    tables.write(times, "static", "times", folder)
    read_tables_anew()
    selector = {"server": "nginx", "configuration": "tuned", "statistic": "connection_time_p99_us"}
    assert selecting.values("planted", "static", selector).all == [500.0]
    read_tables_anew()


def test_points_that_count_follow_the_definition():
    points = pl.DataFrame({
        "client_limited": [False, True, False, False],
        "report": ["whole", "whole", "truncated", "whole"],
        "laws_broken": [[], [], [], ["LAW-STEADY"]],
        RATE: [1, 2, 3, 4],
    })  # fmt: skip
    of_points = set(Points) - {Points.SEARCHES}
    left = {which: by_trial.counted(points, which)[RATE].to_list() for which in of_points}
    assert left == {Points.VALID: [1, 4], Points.STEADY: [1], Points.ENDING: [1, 3, 4],
                    Points.TRIALS: [1, 2, 3, 4]}  # fmt: skip
