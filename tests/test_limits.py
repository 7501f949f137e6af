"""Whose limit a point shows: planted truths, and what the committed reference comes to."""

import polars as pl
import pytest
from conftest import Tree, bench

from deathmatch.analysis import views
from deathmatch.data import laws, limits
from deathmatch.quantities.quantity import RATE

RATES_RPS = [1000, 2000, 4000]
DURATION_US = 1_000_000
KEY = ["server", "variant", "n"]


def evidence(behaviours: dict[str, dict], trials: int = 3) -> laws.Evidence:
    """Return the tables of servers that behave as planted at the highest rate, else perfectly.

    A behaviour has `on_time`, `cpu`, `overflow` (shares of 1), `burst`, `state`, `client`; the rate
    from which on it holds is `from_rps`.
    """
    points, times, samples, rows = [], [], [], []
    for server, behaviour in behaviours.items():
        for n in range(1, trials + 1):
            key = {"server": server, "variant": "v", "n": n}
            rows.append(key | {"server_cpus": [0], "throttle": behaviour.get("throttle", "")})
            clock_us, used_ns = 0, 0
            for rate in RATES_RPS:
                over = rate >= behaviour.get("from_rps", RATES_RPS[-1])
                seen = behaviour if over else {}
                point = key | {RATE: rate}
                points.append(point | {
                    "duration_us": DURATION_US, "report": "whole", "connections": rate,
                    "server_state": seen.get("state", "ran"),
                    "client_limited": seen.get("client", False),
                    "connect_burst_connections": seen.get("burst", 1),
                    "server_listen_overflows": round(seen.get("overflow", 0) * rate),
                })  # fmt: skip
                in_time = round(seen.get("on_time", 1) * rate)
                for time_us, count in (500, in_time), (2_000_000, rate - in_time):
                    times.append(point | {"quantity": "connection_time", "time_us": time_us,
                                          "count": count})  # fmt: skip
                samples.append(point | {"time_us": clock_us, "server_cpu_ns": used_ns})
                clock_us += DURATION_US
                used_ns += round(seen.get("cpu", 0.2) * DURATION_US * 1000)
                samples.append(point | {"time_us": clock_us, "server_cpu_ns": used_ns})
    frames = {
        "points": pl.DataFrame(points), "times": pl.DataFrame(times),
        "samples": pl.DataFrame(samples), "trials": pl.DataFrame(rows), "seconds": pl.DataFrame(),
    }  # fmt: skip
    return laws.evidence("backlog", frames)


def limit_of(behaviours: dict[str, dict], server: str = "mine") -> str | None:
    """Return the limit of a server at the highest rate, the same in every trial."""
    marked = limits.marked(evidence(behaviours)).filter(pl.col(RATE) == RATES_RPS[-1])
    (limit,) = set(marked.filter(server=server)["limit"])
    return limit


LATE = {"on_time": 0.5}
NULL_IS_LATE, NULL_IS_IN_TIME = {"null": LATE | {"cpu": 0.5}}, {"null": {}}


@pytest.mark.parametrize(("mine", "null", "limit"), [
    ({}, NULL_IS_IN_TIME, "none"),
    ({}, NULL_IS_LATE, "none"),
    (LATE, NULL_IS_IN_TIME, "server"),
    (LATE | {"cpu": 0.5}, NULL_IS_LATE, "testbed"),
    (LATE | {"cpu": 0.95}, NULL_IS_LATE, "server"),
    (LATE | {"cpu": 0.39, "throttle": "cpu_quota_us 40000; cpu_period_us 100000"}, NULL_IS_LATE,
     "server"),
    (LATE | {"overflow": 0.2, "burst": 2}, NULL_IS_LATE, "server"),
    (LATE | {"overflow": 0.2, "burst": 80}, NULL_IS_LATE, "testbed"),
    (LATE | {"state": "died"}, NULL_IS_LATE, "server"),
    (LATE | {"client": True}, NULL_IS_IN_TIME, "client"),
    (LATE, {}, None),
    (LATE | {"cpu": 0.95}, {}, "server"),
])  # fmt: skip
def test_a_planted_limit_is_called_by_its_name(mine, null, limit):
    assert limit_of({"mine": mine} | null) == limit


def test_one_trial_of_three_does_not_choose_itself():
    """The limit is that of the variant: else its fast trials would count, and its slow ones not."""
    given = evidence({"mine": LATE | {"cpu": 0.5}} | NULL_IS_LATE)
    lucky = (pl.col("n") == 1) & (pl.col("server") == "mine")
    used = pl.when(lucky).then(pl.col("server_cpu_ns") * 2).otherwise("server_cpu_ns")
    samples = given.samples.with_columns(server_cpu_ns=used)
    marked = limits.marked(laws.Evidence(**vars(given) | {"samples": samples}))
    top = marked.filter(pl.col(RATE) == RATES_RPS[-1], server="mine")
    assert set(top["limit"]) == {"testbed"} and top["server_cpu_ratio"].n_unique() == 2


def test_the_best_variant_of_the_null_server_is_the_ceiling():
    """One with a short queue shows its own limit."""
    given = evidence({"mine": LATE | {"cpu": 0.5}, "null": LATE})
    deep = given.points.filter(server="null").with_columns(variant=pl.lit("deep"))
    answered = given.times.filter(server="null").with_columns(variant=pl.lit("deep"))
    in_time = answered.with_columns(time_us=pl.lit(500, pl.Int64))
    marked = limits.marked(laws.Evidence(**vars(given) | {
        "points": pl.concat([given.points, deep]), "times": pl.concat([given.times, in_time]),
    }))  # fmt: skip
    assert set(marked.filter(server="mine", variant="v")["limit"]) == {"none", "server"}


def test_points_at_the_testbed_s_limit_are_in_no_verdict_and_drawn_hollow():
    """On the committed reference: httperf at 24,000 connections a second reads late."""
    single = views.Experiment("reference", "single-thread")
    limited = single.limited_points
    assert set(limited[RATE]) == {24000} and "null" in set(limited["server"])
    key = [*KEY, RATE]
    assert single.valid_points.join(limited, on=key, how="semi").is_empty()
    # What those servers answered below it still counts, and is no longer their highest rate.
    assert set(single.valid_points.filter(server="go")["top_rate_rps"]) == {16000}


planted = bench("limits")


@pytest.mark.alone
def test_a_limit_planted_in_real_load_is_called_by_its_name(tree: Tree):
    """One of each; bench/limits.py runs more.

    Other work on this machine limits the free client too, and then that is the right answer.
    """
    planted.plant(tree.path, runs=1)
    for client in planted.CLIENTS:
        planted.run(tree.path, client)
    points = planted.at_limit(
        pl.concat([planted.judged(tree.path, client) for client in planted.CLIENTS])
    )
    called = {(row["server"], row["client"]): row["limit"] for row in points.to_dicts()}
    assert called["fast", "slow"] in ("client", "testbed")
    assert called["slow", "free"] in ("server", "client", "testbed")
    assert called["fast", "free"] in ("none", "client", "testbed")
    free = {called[server, "free"] for server in ("null", "fast", "slow")}
    if not free & {"client", "testbed"}:
        assert called["slow", "free"] == "server" and called["fast", "free"] == "none"
