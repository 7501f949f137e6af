"""The limit that a point shows: planted limits, and those of the miniature."""

from dataclasses import replace

import polars as pl
import pytest
from conftest import Tree, bench, instead

from deathmatch.analysis import views
from deathmatch.data import laws, limits, tables
from deathmatch.data.kernel_samples import RUN_DELAYS
from deathmatch.quantities.quantity import RATE

RATES_RPS = [1000, 2000, 4000]
DURATION_US = 1_000_000
KEY = ["server", "variant", "n"]
# The counters of a sample: what a behaviour calls them, and their share of the time without it.
COUNTED = {
    "server_cpu_ns": ("cpu", 0.2), "server_run_delay_ns": ("delay", 0.01),
    "client_cpu_ns": ("client_sampled", 0.9), "client_run_delay_ns": ("client_delay", 0.01),
    "server_cpus_iowait_us": ("", 0.0), "cpu_iowait_us": ("", 0.0), "cpu_idle_us": ("", 0.0),
    "server_cpus_idle_us": ("", 0.0),
}  # fmt: skip


def evidence(behaviours: dict[str, dict], trials: int = 3) -> laws.Evidence:
    """Return the tables of servers that behave as planted at the highest rate, else perfectly.

    A behaviour has, as shares of 1, `on_time`, `cpu`, `others` (what others used of its CPU),
    `delay` and `client_delay` (how long it waited for one), `client_cpu`, `client_sampled` (what
    samples saw of that), `client_others` and `overflow`; `burst`, `pause_us`, `state`, `client`;
    `from_rps`, from which on it holds, and `only_n`, the trial in which it does.
    """
    points, times, samples, rows = [], [], [], []
    for server, behaviour in behaviours.items():
        for n in range(1, trials + 1):
            key = {"server": server, "variant": "v", "n": n}
            rows.append(key | {
                "cpus": 2, "server_cpus": [0], "client_cpus": [1], "clients": 1,
            })  # fmt: skip
            counted = dict.fromkeys(COUNTED, 0) | {"time_us": 0}
            for rate in behaviour.get("rates_rps", RATES_RPS):
                over = rate >= behaviour.get("from_rps", RATES_RPS[-1])
                over &= n == behaviour.get("only_n", n)
                seen = behaviour if over else {}
                point = key | {RATE: rate}
                points.append(point | {
                    "duration_us": DURATION_US, "report": "whole", "connections": rate,
                    "server_state": seen.get("state", "ran"),
                    "client_limited": seen.get("client", False),
                    "connect_burst_connections": seen.get("burst", 1),
                    "look_interval_max_us": seen.get("pause_us", 900),
                    "client_cpu_user_us": round(seen.get("client_cpu", 0.9) * DURATION_US),
                    "server_listen_overflows": round(seen.get("overflow", 0) * rate),
                })  # fmt: skip
                in_time = round(seen.get("on_time", 1) * rate)
                for time_us, count in (500, in_time), (2_000_000, rate - in_time):
                    times.append(point | {"quantity": "connection_time", "time_us": time_us,
                                          "count": count})  # fmt: skip
                samples.append(point | counted)
                seen = {"client_sampled": seen.get("client_cpu", 0.9)} | seen
                shares = [seen.get(name, least) for name, least in COUNTED.values()]
                busy = shares[0] + seen.get("others", 0.01)
                shares[-1] = 1 - min(busy, 1)
                rest = 1 - seen.get("client_cpu", 0.9) - seen.get("client_others", 0.02)
                shares[-2] = shares[-1] + rest
                for name, share in zip(COUNTED, shares):
                    unit = 1000 if name.endswith("_ns") else 1
                    counted[name] += round(share * DURATION_US * unit)
                counted["time_us"] += DURATION_US
                samples.append(point | counted)
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
    (LATE | {"overflow": 0.2, "burst": 2}, NULL_IS_LATE, "server"),
    (LATE | {"overflow": 0.2, "burst": 80}, NULL_IS_LATE, "testbed"),
    (LATE | {"state": "died"}, NULL_IS_LATE, "server"),
    (LATE | {"client": True}, NULL_IS_IN_TIME, "client"),
    (LATE, {}, "unknown"),
    (LATE | {"cpu": 0.95}, {}, "server"),
    # Beyond the null server's rates the limit is unknown, but for a server that was late before.
    (LATE, {"null": {"rates_rps": RATES_RPS[:-1]}}, "unknown"),
    (LATE | {"from_rps": 2000}, {"null": {"rates_rps": RATES_RPS[:-1]}}, "server"),
    (LATE | {"from_rps": 2000}, NULL_IS_LATE, "server"),
    # A pause of the client is its own, whether replies were late or not.
    (LATE | {"pause_us": 102_000, "overflow": 0.03, "cpu": 0.95}, NULL_IS_IN_TIME, "client"),
    ({"pause_us": 402_000}, NULL_IS_IN_TIME, "client"),
    ({"client_delay": 0.4}, NULL_IS_IN_TIME, "client"),
    ({"client_others": 0.85, "client_cpu": 0.13}, NULL_IS_IN_TIME, "client"),
    # The last sample that saw the client was long before its end.
    ({"client_sampled": 0.3}, NULL_IS_IN_TIME, "none"),
    # Another program on the server's CPU, and threads of the server that wait for each other.
    (LATE | {"cpu": 0.51, "others": 0.48, "delay": 0.47}, NULL_IS_IN_TIME, "other load"),
    (LATE | {"cpu": 0.7, "others": 0.3, "delay": 0.25}, NULL_IS_IN_TIME, "other load"),
    (LATE | {"cpu": 0.1, "others": 0.3, "delay": 0.02}, NULL_IS_IN_TIME, "server"),
    (LATE | {"cpu": 0.95, "others": 0.02, "delay": 7.0}, NULL_IS_IN_TIME, "server"),
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


@pytest.mark.parametrize(
    ("fault", "called"), [({"pause_us": 400_000}, "client"),
    ({"cpu": 0.5, "others": 0.5, "delay": 0.5}, "other load")]
)  # fmt: skip
def test_a_fault_of_one_trial_is_no_limit_of_the_others(fault, called):
    marked = limits.marked(evidence({"mine": LATE | fault | {"only_n": 2}} | NULL_IS_IN_TIME))
    top = marked.filter(pl.col(RATE) == RATES_RPS[-1], server="mine").sort("n")
    assert top["limit"].to_list() == ["none", called, "none"]
    assert top.select(limits.by_harness(top)).to_series().to_list() == [False, True, False]
    assert not top.select(limits.beyond_testbed(top)).to_series().any()
    why = views.why_not_measured({"outcome": "measured"}, top.filter(n=2))
    assert ("other work" in why) == (called == "other load")


def test_points_without_recorded_waits_keep_their_limits():
    given = evidence({"mine": LATE | {"cpu": 0.5, "others": 0.5, "delay": 0.5}} | NULL_IS_IN_TIME)
    unknown = given.samples.with_columns(pl.lit(None, pl.Int64).alias(n) for n in RUN_DELAYS)
    marked = limits.marked(laws.Evidence(**vars(given) | {"samples": unknown}))
    assert set(marked.filter(pl.col(RATE) == RATES_RPS[-1], server="mine")["limit"]) == {"server"}
    assert marked["server_wait_ratio"].is_null().all()


def test_the_best_variant_of_the_null_server_is_the_ceiling():
    """A null server with a short queue shows its own limit."""
    given = evidence({"mine": LATE | {"cpu": 0.5}, "null": LATE})
    deep = given.points.filter(server="null").with_columns(variant=pl.lit("deep"))
    answered = given.times.filter(server="null").with_columns(variant=pl.lit("deep"))
    in_time = answered.with_columns(time_us=pl.lit(500, pl.Int64))
    marked = limits.marked(laws.Evidence(**vars(given) | {
        "points": pl.concat([given.points, deep]), "times": pl.concat([given.times, in_time]),
    }))  # fmt: skip
    assert set(marked.filter(server="mine", variant="v")["limit"]) == {"none", "server"}


def test_points_at_the_testbed_s_limit_are_in_no_verdict_and_drawn_hollow(miniature):
    place = (miniature, "single-thread", "points")
    at_top = pl.col(RATE) == pl.max(RATE)
    marked = tables.read(*place).with_columns(
        limit=pl.when(at_top).then(pl.lit(limits.TESTBED)).otherwise("limit")
    )
    others = {
        (*place[:2], table): tables.read(*place[:2], table)
        for table in ("trials", "times", "samples")
    }
    with instead({place: marked} | others):
        single = views.Experiment(miniature, "single-thread")
        top, limited = marked[RATE].max(), single.limited_points
        assert set(limited[RATE]) == {top} and "null" in set(limited["server"])
        valid = single.valid_points
        assert valid.join(limited, on=[*KEY, RATE], how="semi").is_empty()
        # What a server answered below it still counts, and is no longer its highest rate.
        assert max(valid["top_rate_rps"]) < top


planted = bench("limits")


def test_a_limit_planted_in_real_load_is_called_by_its_name(tree: Tree):
    """A fault of each kind; bench/limits.py runs more.

    Other work on this machine disturbs every point, and then that is the right answer.
    """
    busy = "a program on the server's CPU"
    clients, faults = [planted.ROUNDTRIP], (planted.QUIET, busy, planted.PAUSED)
    for fault, servers in ((planted.QUIET, ("burning", "slow")), (planted.PAUSED, ("burning",))):
        planted.FAULTS[fault] = replace(planted.FAULTS[fault], servers=servers)
    # In one run alone, a fault of the client would leave no usable number.
    planted.plant(tree.path, 2, clients)
    for fault in faults:
        planted.run(tree.path, fault)
    points = planted.at_limit(planted.judged(tree.path, faults, clients))
    of_quiet = set(points.filter(fault=planted.QUIET)["limit"])
    # A null server that other work disturbs shows nothing of those that are late.
    others = planted.BUSY_ANSWERS | ({limits.UNKNOWN} if of_quiet & planted.BUSY_ANSWERS else set())
    for row in points.to_dicts():
        truth = planted.expected(row["fault"], row["server"])
        assert not truth or row["limit"] in truth | others, row
    called = {(row["fault"], row["limit"]) for row in points.to_dicts()}
    assert (f"{planted.PAUSED} for 400 ms", limits.CLIENT) in called
    assert (busy, limits.OTHER) in called or (busy, limits.CLIENT) in called
