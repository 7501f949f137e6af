"""Emulated CPUs: each guard accuses its own fault, and no sound trial."""

from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from conftest import bench

from deathmatch.analysis import cpu_left, decidable, speed_up
from deathmatch.data import cpu_shares, emulation
from deathmatch.data.kernel_samples import SCHEMA
from deathmatch.data.strict.emulation_rules import EMULATION
from deathmatch.data.strict.measured import Measured
from deathmatch.quantities.quantity import REPLY

ALL = {"emulated_cpus": 4, "cpu_quota_us": 28_000, "cpu_period_us": 20_000}
ONE = {"emulated_cpus": 1, "cpu_quota_us": 7_000, "cpu_period_us": 20_000}
SPAN_US, START_US = 2_000_000, cpu_shares.START_US


def point(used: float, throttle: dict, workers=None, **shares: float) -> dict:
    """Return a recorded point at which a server used that much of its quota."""
    quota = throttle["cpu_quota_us"] / throttle["cpu_period_us"]
    server_us = round(used * quota * SPAN_US)
    shares = {"client": 0.4, "idle": 0.05} | shares
    count = throttle["emulated_cpus"]
    return {
        "offered_rate_rps": 0,
        "workers_us": workers or [server_us // count] * count,
        "cpu": {
            "span_us": SPAN_US, "server_us": server_us, "total_us": 2 * SPAN_US,
            "client_us": round(shares["client"] * SPAN_US),
            "idle_us": round(shares["idle"] * 2 * SPAN_US),
        },
    }  # fmt: skip


@pytest.mark.parametrize(
    ("planted", "throttle", "broken"),
    [
        (point(0.98, ONE), ONE, ()),
        (point(0.985, ALL), ALL, ()),
        # The least that four workers used without a lock, and the most with 0.3 of it locked.
        (point(0.995, ALL, idle=0.27), ALL, ()),
        (point(0.964, ALL, idle=0.30), ALL, ("shared",)),
        (point(0.90, ONE), ONE, ("cap",)),
        # One worker that leaves CPU time is no saturated worker, whatever the machine has left.
        (point(0.90, ONE, idle=0.5), ONE, ("cap",)),
        (point(0.80, ALL), ALL, ("cap",)),
        (point(0.60, ALL, idle=0.3), ALL, ("shared",)),
        (point(0.98, ONE, client=0.8), ONE, ("client",)),
        (point(0.99, ALL, client=0.7), ALL, ("client",)),
        (point(0.99, ALL, [900_000, 900_000, 900_000]), ALL, ("served",)),
        (point(0.99, ALL, [900_000, 900_000, 900_000, 30_000]), ALL, ("served",)),
    ],
)  # fmt: skip
def test_each_guard_accuses_its_own_fault(planted, throttle, broken):
    guards = emulation.of_trial([planted], throttle)
    assert guards.broken == broken
    assert guards.word == (", ".join(broken) or "met")
    assert guards.record()["broken"] == list(broken)


def test_guards_look_where_the_server_was_busiest():
    points = [point(0.2, ALL) | {"offered_rate_rps": 1000}, point(0.99, ALL), point(0.5, ALL)]
    assert emulation.of_trial(points, ALL).broken == ()
    uncounted = point(0.99, ALL)
    uncounted["cpu"]["server_us"] = None
    assert emulation.of_trial([uncounted, {"offered_rate_rps": 1, "cpu": {}}], ALL) is None


@pytest.mark.parametrize(
    ("speeds", "agree"),
    [
        ({20_000: [100, 104, 300], 40_000: [98, 99]}, True),
        ({20_000: [100, 101], 40_000: [112, 115]}, False),
        ({20_000: [100]}, True),
        ({}, True),
    ],
)
def test_two_periods_give_one_speed(speeds, agree):
    assert emulation.periods_agree(speeds) is agree


def test_a_speed_up_is_bounded_by_what_replies_cost():
    assert emulation.most_speed_up(4, 100, 100) == 4
    assert emulation.most_speed_up(4, 100, 187) == pytest.approx(2.14, abs=0.01)


def test_the_lock_has_the_speed_up_of_mean_value_analysis():
    exact = {
        (2, 0.0): 2.0, (2, 0.1): 2 / 1.01, (2, 0.3): 2 / 1.09, (2, 0.5): 1.6,
        (4, 0.0): 4.0, (4, 0.1): 3.86, (4, 0.3): 2.90, (4, 0.5): 1.97,
    }  # fmt: skip
    found = {known: speed_up.of_lock(*known) for known in exact}
    assert found == pytest.approx(exact, abs=0.005)
    assert speed_up.of_lock(1, 0.3) == 1


def test_what_each_side_got_is_counted_while_load_was_offered():
    rows = [
        # The load generator starts.
        {"time_us": 0, "server_cpu_ns": 0, "client_cpu_ns": 0, "cpu_idle_us": 0},
        {"time_us": 499_000, "server_cpu_ns": 1_000, "client_cpu_ns": 0, "cpu_idle_us": 90},
        {"time_us": 500_000, "server_cpu_ns": 5_000, "client_cpu_ns": 0, "cpu_idle_us": 100},
        {"time_us": 1_500_000, "server_cpu_ns": 905_000, "client_cpu_ns": 300_000,
         "cpu_idle_us": 400_100, "cpu_user_us": 1_500_000},
        # It has ended.
        {"time_us": 1_530_000, "server_cpu_ns": 925_000, "client_cpu_ns": 0,
         "cpu_idle_us": 420_100, "cpu_user_us": 1_600_000},
        {"time_us": 3_000_000, "server_cpu_ns": 999_000_000, "client_cpu_ns": 0},
    ]  # fmt: skip
    empty = dict.fromkeys(SCHEMA) | {"offered_rate_rps": 0, "cpu_user_us": 0}
    samples = pl.DataFrame([empty | row for row in rows], schema=SCHEMA)
    assert cpu_shares.shares(samples, 0, 1_500_000) == {
        "span_us": 1_030_000, "server_us": 920, "client_us": 300, "idle_us": 420_000,
        "total_us": 2_020_000,
    }  # fmt: skip
    assert cpu_shares.shares(samples, 7, 1_500_000) == {}


def left(server: list[int], client: list[int], used: float | None, throttle: str = "") -> float:
    """Return what is left to a server of the CPUs, where the client used so many."""
    key = {"server": "x", "variant": "y", "n": 1}
    trials = pl.DataFrame([
        key | {"server_cpus": server, "client_cpus": client, "throttle": throttle}
    ])  # fmt: skip
    rows = [
        key | {"offered_rate_rps": 0, "time_us": time_us, "client_cpu_ns": ns}
        for time_us, ns in (
            (0, 0), (10_000, 1_000_000), (1_010_000, 1_000_000 + round(1e9 * (used or 0))),
            (1_100_000, 0),
        )
    ]  # fmt: skip
    known = cpu_left.by_trial(trials, None if used is None else pl.DataFrame(rows))
    return known["left"].item()


@pytest.mark.parametrize(
    ("server", "client", "used", "cpus"),
    [
        ([0], [1], 0.9, 1),
        ([0, 1], [1], 0.9, 1.1),
        # httperf takes a CPU.
        ([0, 1], [0, 1], 1.0, 1.0),
        ([0, 1], [0, 1], 0.25, 1.75),
        # It cannot take more of the server's CPUs than both have.
        ([0, 1, 2], [2, 3], 1.8, 2.0),
        ([0, 1], [1], None, 1),
        ([0, 1, 2, 3], [4], None, 4),
    ],
)
def test_what_is_left_to_a_server_is_what_the_client_did_not_use(server, client, used, cpus):
    assert left(server, client, used) == pytest.approx(cpus)


def test_a_quota_leaves_its_share():
    throttle = "cpu_quota_us 80000; cpu_period_us 100000"
    assert left([0, 1], [0, 1], 0.25, throttle) == 0.8
    assert left([0, 1], [0, 1], 0.5, f"{throttle}; emulated_cpus 4; guards met") == 4


# Of several trials, and of a whole record


def speeds(one: list[float], every: list[float], costs=(100.0, 100.0)) -> list[emulation.Speed]:
    """Return the speeds of trials of which each second has longer periods."""
    return [
        emulation.Speed(("x", "y", "z"), level, cpus, 20_000 if n % 2 else 40_000, speed, cost)
        for level, cpus, own, cost in (("one", 1, one, costs[0]), ("all", 4, every, costs[1]))
        for n, speed in enumerate(own, 1)
    ]


@pytest.mark.parametrize(
    ("made", "names"),
    [
        (speeds([100, 101, 102], [385, 390, 388]), []),
        (speeds([100, 101, 102], [300, 340, 302]), ["periods"]),
        (speeds([100, 101, 102], [350, 348, 352], (100.0, 187.0)), ["bound"]),
        (speeds([100, 120, 100], []), ["periods"]),
        ([], []),
    ],
)
def test_guards_of_several_trials_accuse_their_own_fault(made, names):
    assert [name for _, name, _ in emulation.of_several(made)] == names


def measured(schedulers: str, n: int, rate_rps: float, change=lambda record: None) -> Measured:
    """Return a trial as the strict check sees it, sound but for `change`."""
    throttle = dict(ALL if schedulers == "all" else ONE)
    planted = point(0.99, throttle)
    got = planted["cpu"]
    empty = dict.fromkeys(SCHEMA) | {"offered_rate_rps": 0, "cpu_user_us": 0}
    ends = [
        empty | {"time_us": 0},
        empty | {"time_us": START_US, "server_cpu_ns": 0, "client_cpu_ns": 0, "cpu_idle_us": 0},
        empty | {"time_us": START_US + SPAN_US, "server_cpu_ns": 1000 * got["server_us"],
                 "client_cpu_ns": 1000 * got["client_us"], "cpu_idle_us": got["idle_us"],
                 "cpu_user_us": got["total_us"] - got["idle_us"]},
    ]  # fmt: skip
    guards = emulation.of_trial([planted], throttle)
    factors = {"schedulers": schedulers, "own_testbed": "four-emulated"}
    record = {
        "spec": {"client": "roundtrip", "factors": factors, "duration_s": 2.5},
        "points": [planted], "throttle": throttle | {"guards": guards.word},
        "emulation": guards.record(),
    }  # fmt: skip
    change(record)
    row = {REPLY: rate_rps, "replies": 1000, "server_cpu_ns": 10**9}
    folder = f"data/mine/overhead/x/schedulers={schedulers},own_testbed=four-emulated/{n}"
    samples = pl.DataFrame(ends, schema=SCHEMA).with_columns(server=pl.lit("x"))
    return Measured(folder, Path(), record, rows=[row], samples=samples)


def seen(*trials: Measured) -> dict[str, list[str]]:
    """Return what each rule says of trials, by its identifier."""
    looked = SimpleNamespace(loaded=trials, named="data/mine")
    by_rule = {rule.id: list(rule.seen(looked)) for rule in EMULATION.rules}
    return {name: [one.what for one in found] for name, found in by_rule.items() if found}


SOUND = [
    measured(level, n, rate) for level, rate in (("one", 100), ("all", 390)) for n in (1, 2, 3)
]


def test_sound_trials_are_not_accused():
    assert seen(*SOUND) == {}


def test_a_broken_guard_is_reported_with_what_was_seen():
    def limited(record: dict) -> None:
        record["emulation"] |= {"broken": ["client"], "client": 0.8}

    found = seen(*SOUND, measured("all", 4, 390, limited))
    assert found.keys() == {"DM-EMULATED", "DM-EMULATED-RECORD"}
    (text,) = found["DM-EMULATED"]
    assert text.startswith("guard client: ") and "'client': 0.8" in text


def test_guards_that_the_samples_do_not_give_are_rejected():
    found = seen(measured("one", 1, 100, lambda r: r["emulation"].update(used=0.9)))
    assert found.keys() == {"DM-EMULATED-RECORD"} and "0.9" in found["DM-EMULATED-RECORD"][0]
    found = seen(measured("one", 1, 100, lambda r: r["throttle"].update(guards="cap")))
    assert found.keys() == {"DM-EMULATED-RECORD"} and "'cap'" in found["DM-EMULATED-RECORD"][0]


def test_a_speed_up_beyond_its_bound_is_reported():
    found = seen(*SOUND[:3], *(measured("all", n, 430) for n in (1, 2, 3)))
    assert found.keys() == {"DM-EMULATED-SPEEDS"}
    assert "4.30 times as fast, where replies allow 4.00" in found["DM-EMULATED-SPEEDS"][0]


def test_the_table_of_speed_ups_holds_the_planted_truth_against_what_was_measured():
    speed_ups = bench("speed_ups")

    def trial(server: str, configuration: str, schedulers: str, n: int, rate_rps: float):
        cpus, guards = (4, "met") if schedulers == "all" else (1, "met")
        return speed_ups.Measured(
            server, configuration, "four-emulated", schedulers, n, cpus, rate_rps, 1e6, 1.8, guards,
            0.24 if schedulers == "all" else None, server == "tornado-nginx",
        )  # fmt: skip

    rows = [
        ("planted-lock", "lock-0", "one", 100), ("planted-lock", "lock-10", "all", 380),
        ("planted-lock", "lock-50", "all", 246), ("tornado", "", "one", 100),
        ("tornado-nginx", "new-connections", "all", 210),
    ]  # fmt: skip
    trials = [
        trial(server, configuration, level, n, rate + n)
        for server, configuration, level, rate in rows
        for n in (1, 2, 3)
    ]
    _, _, *lines = speed_ups.lines(trials)
    cells = {line.split(" | ")[1]: line.split(" | ") for line in lines}
    assert cells["planted-lock lock-10"][2].startswith("3.75 [")
    assert cells["planted-lock lock-10"][4:7] == ["3.86", "-3 %", "4.00"]
    assert cells["planted-lock lock-50"][4:6] == ["1.97", "+23 % !"]
    # One process alone, in front of which nothing stands, bounds nothing.
    assert cells["tornado-nginx new-connections"][2].startswith("2.08 [")
    assert cells["tornado-nginx new-connections"][4:7] == ["", "", ""]
    assert cells["tornado-nginx new-connections"][-1] == "6 of 6 met; answered in full: all |"
    assert cells["planted-lock lock-10"][-1] == "6 of 6 met |"


@pytest.mark.parametrize(("left", "places"), [(1, {"both", "four-emulated"}), (3, {""})])
def test_which_claims_a_testbed_can_decide(left, places):
    found = decidable.by_place(left)
    assert places <= found.keys() <= places | {"both"}
    named = {name for names in found.values() for name in names}
    assert "walkin-yucan-scales-over-cores" in named
    # It speaks of latencies: no emulated CPU decides it.
    assert ("moritz-cluster-rescues-node" in named) is (left == 3)
    text = "\n".join(decidable.text(found, left))
    assert ("by emulation, on the testbed four-emulated" in text) is (left == 1)
    assert ("here, where the client leaves the server 3 CPUs" in text) is (left == 3)
