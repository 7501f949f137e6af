"""Verdicts on planted datasets: each dataset would mislead a rule in one way."""

import re

import polars as pl
import pytest
from conftest import read_tables_anew
from plant import write

from deathmatch.analysis import c10k, claims, judging, published, selecting
from deathmatch.analysis.ledger import Entry
from deathmatch.analysis.stats import NO_TRIAL
from deathmatch.capacity_search.search import CLIENT, FOUND
from deathmatch.data import archive, table_files, tables
from deathmatch.plan import files

# The fields of every point, unless a test sets others.
USUAL = {
    "server_state": "ran",
    "client_state": "exit 0",
    "client_limited": False,
    "schedulers": "one",
    "readiness": "epoll",
}
NOISY = re.compile("reply_rate|message_latency|handshake_time|server_cpu_ns|load_average")
RATE, REPLY = "offered_rate_rps", "reply_rate_offered_window_rps"
# With fewer trials that all end alike, the exact interval at 5 % contains one half.
DEATHS = 6


class Ledger:
    """The entries of the planted dataset's ledger by the claims' names."""

    def __getitem__(self, name: str) -> Entry:
        known = {claim.id: claim for claim in published.claims()}
        return claims.entry("planted", known[name])


@pytest.fixture
def plant(tmp_path, monkeypatch):
    """Return a function that writes tables of an experiment and returns the ledger's entries.

    Each row is a point, of some trials whose measured values differ by up to a part in a hundred,
    in each row otherwise. Fewer than nine trials that are all alike decide no rule of many parts.
    """
    monkeypatch.setattr(table_files, "ROOT", tmp_path)
    monkeypatch.setattr(archive, "ROOT", tmp_path)

    def planted(
        experiment: str, rows: list[dict], trial: dict | None = None, trials: int = 9
    ) -> Ledger:
        defaults = {
            name: factor.default for name, factor in files.experiment(experiment).factors.items()
        }
        full = [
            defaults
            | USUAL
            | {"variant": ",".join(f"{k}={row[k]}" for k in row if k in defaults), "n": n}
            | {
                k: v * (1 + n * (at % 10 + 1) % 11 / 1000) if NOISY.match(k) else v
                for k, v in row.items()
            }
            for at, row in enumerate(rows)
            for n in range(1, trials + 1)
        ]
        write(tmp_path, "planted", experiment, full, **(trial or {}))
        return Ledger()

    return planted


ENDED = {
    "probe": 1, "round": 1, "step": "up-down", RATE: 1, "duration_us": 1, "server_state": "ran",
    "client_state": "exit 0", "report": "whole", "due": 1, "client_limited": False, "replies": 1,
    REPLY: 1.0, "late_10_ms": 0, "late_1_s": 0, "over": False, "timeouts": 0,
}  # fmt: skip


@pytest.fixture
def search(plant, tmp_path):
    """Return a function that plants rows, and of their servers the ends of searches.

    `capacities_rps`: what the search of each of a server's trials came to, some hundredths apart.
    """

    def planted(
        experiment: str, rows: list[dict], capacities_rps: dict[str, float], outcome: str = FOUND
    ) -> Ledger:
        plant(experiment, rows)
        folder = tmp_path / "data" / "planted" / experiment
        points = pl.read_parquet(folder / "points.parquet")
        keys = points.select(name for name in points.columns if name in tables.keys(experiment))
        ends = [
            key | ENDED | {"outcome": outcome,
                           "capacity_rps": rps * (1 + key["n"] * (at + 1) % 11 / 1000)}
            for at, (server, rps) in enumerate(capacities_rps.items())
            for key in keys.unique(maintain_order=True).filter(server=server).to_dicts()
        ]  # fmt: skip
        probes = pl.DataFrame(ends, schema=tables.columns(experiment, "probes"))
        tables.write(probes, experiment, "probes", folder)
        read_tables_anew()
        return Ledger()

    return planted


def websocket(server: str) -> dict:
    return {"server": server, "environment": "unthrottled", "connections": 10_000,
            "outcome_completed": 10_000, "connection_timeouts": 0, RATE: 10_000,
            "messages_due": 100_000, "duration_us": 15_000_000}  # fmt: skip


def test_without_a_report_nothing_is_counted_and_nothing_decided(plant):
    lost = {"connections": None, "outcome_completed": None, "connection_timeouts": None,
            "report": "truncated", "client_limited": True}  # fmt: skip
    plant("backlog", [{"server": "yucan", RATE: 10_000, "duration_us": 10, "report": "truncated"}])
    for statistic, trials in (("error_ratio", 0), ("died", 9)):
        chosen = {"server": "yucan", "statistic": statistic}
        assert len(selecting.values("planted", "backlog", chosen)) == trials
    plant("c10k", [
        websocket("erlang-cowboy"), websocket("node-ws") | lost, websocket("ws-null"),
    ])  # fmt: skip
    points = tables.read("planted", "c10k", "points").with_columns(label=pl.col("server"))
    # An instrument does not count among the servers.
    assert c10k.held(points).select("label", "whole").rows() == [("erlang-cowboy", True)]
    assert c10k.losses_table(points).is_empty()


# Then and now


def crash(old_dies: bool, new_dies: bool, descriptors: int) -> list[dict]:
    state = {True: "died: exit status 1", False: "ran"}
    known = {"idle_connections": 900, RATE: 10_000, "server_descriptors_max": descriptors}
    servers = {"tornado-1": old_dies, "tornado": new_dies}
    return [
        {"server": server, "readiness": mechanism, **known,
         "server_state": state[dies and mechanism == "select"]}
        for server, dies in servers.items() for mechanism in ("select", "epoll")
    ]  # fmt: skip


def test_a_claim_is_decided_on_the_release_of_its_time_and_on_todays(plant):
    rows = crash(old_dies=True, new_dies=False, descriptors=2000)
    found = plant("select-overload", rows, trials=DEATHS)
    died, cured = found["walkin-select-dies-under-overload"], found["walkin-epoll-does-not-die"]
    assert (died.then.verdict, died.now.verdict) == (judging.REPLICATED, judging.NOT)
    assert not died.same and died.then.sides[0].what.startswith("Tornado 1.2.1, ")
    # If select survives, epoll has nothing to prevent.
    assert (cured.then.verdict, cured.now.verdict) == (judging.REPLICATED, judging.UNREACHED)


# Conditions


def test_a_sweep_that_opens_few_descriptors_says_nothing_of_select(plant):
    rows = crash(old_dies=True, new_dies=False, descriptors=300)
    found = plant("select-overload", rows, trials=DEATHS)
    row = found["walkin-select-dies-under-overload"]
    assert (row.then.verdict, row.now.verdict) == (judging.REPLICATED, judging.UNREACHED)
    assert "out of select's range" in row.now.why and "there: 0 " in row.now.why
    assert [need.met for need in row.now.needs] == [False]
    # The descriptors at the moment of a death are unknown.
    assert [need.met for need in row.then.needs] == [True]


OVERLOADED = (("mochiweb-otp29", "defaults"), ("node", "parsing"), ("tornado", None))


@pytest.mark.parametrize(("seconds", "verdict"), [(3, judging.UNREACHED), (20, judging.NOT)])
def test_nobody_waits_five_seconds_in_a_queue_of_three(search, seconds, verdict):
    # 2.5 times what the servers answer: after T seconds the last request waits another 1.5 T.
    rows = [
        {"server": server, "configuration": configuration, RATE: 15_000, REPLY: 6000.0,
         "replies": 15_000 * seconds, "duration_us": 1_000_000 * seconds}
        for server, configuration in OVERLOADED
    ]  # fmt: skip
    found = search("dynamic", rows, {server: 6000.0 for server, _ in OVERLOADED})
    assert found["ostinelli-others-fail-under-load"].now.verdict == verdict


def test_a_difference_is_accounted_for_by_what_removes_more_than_half_of_it(plant):
    # Without kernel polling eight times nginx's: with half of the difference gone, 2.8 times.
    cpu_us = {
        ("nginx", "tuned", "epoll"): 10,
        ("yaws", "cached", "epoll"): 20,
        ("mochiweb", "tuned", "epoll"): 20,
        ("yaws-poll", "cached", "poll"): 80,
        ("mochiweb-poll", "tuned", "poll"): 80,
    }
    found = plant("static", [
        {"server": server, "configuration": configuration, "readiness": readiness, RATE: 2000,
         REPLY: 2000.0, "replies": 4000, "server_cpu_ns": 4_000_000 * reply_us}
        for (server, configuration, readiness), reply_us in cpu_us.items()
    ])  # fmt: skip
    row = found["williams-kernel-polling-explains-cpu"].now
    assert row.verdict == judging.REPLICATED
    assert row.sides[1].what.endswith("relative to nginx")


def test_a_client_limited_point_is_not_missing(plant):
    found = plant("dynamic", [
        {"server": "applications", "configuration": application, "variant": application,
         RATE: 9000, REPLY: 1000.0, "client_limited": application == "node"}
        for application in ("cowboy", "mochiweb", "node", "tornado")
    ])  # fmt: skip
    row = found["ostinelli-big-applications-flatten"]
    assert row.now.verdict == judging.UNREACHED and "client-limited" in row.now.why


@pytest.mark.parametrize(("dies_at", "verdict"), [(1100, judging.REPLICATED), (900, judging.NOT)])
def test_a_server_that_ends_during_its_checks_counts_as_died(plant, dies_at, verdict):
    refused = {"outcome": "answers wrongly", "reason": "closed; it ended (exit status 1)"}
    levels = [("select", 1100), ("select", 900), ("epoll", 1100)]
    found = plant("readiness", [
        {"server": "tornado", "readiness": readiness, "idle_connections": idle, RATE: 200,
         "schedulers": "one", "backlog": 128, **(refused if readiness == "select" and
                                                 idle >= dies_at else {})}
        for readiness, idle in levels
    ])  # fmt: skip
    assert found["walkin-select-dies-of-its-descriptors"].now.verdict == verdict


@pytest.mark.parametrize(
    ("rates", "outcome", "verdict"),
    [
        ((3000, 5000, 9000), FOUND, judging.NOT),
        ((1000, 9000), FOUND, judging.NOT_RUN),
        ((3000, 5000, 9000), CLIENT, judging.NOT_RUN),
    ],
)
def test_a_share_of_the_capacity_is_the_rate_nearest_to_it(search, rates, outcome, verdict):
    """5000 is near three quarters of 7000; without a capacity there is no share."""
    rows = [
        {"server": "tornado", "backlog": 128, "somaxconn": 4096, RATE: rate,
         "concurrent_connections": 10 if rate < 4000 else 90}
        for rate in rates
    ]  # fmt: skip
    found = search("backlog", rows, {"tornado": 7000}, outcome)
    assert found["walkin-few-connections-at-once"].now.verdict == verdict


# Sizes


SWEPT = [
    {"server": server, "configuration": configuration, RATE: 40_000, REPLY: reply_rps,
     "backlog": 128}
    for server, configuration, reply_rps in (
        ("mochiweb-otp29", "defaults", 1e3), ("cowboy-otp29", "raised", 2e3)
    )
]  # fmt: skip


def test_a_capacity_that_is_only_a_bound_forms_no_ratio(search, plant):
    """The sweep and the distance of the other side do not matter."""
    found = search("dynamic", SWEPT, {"mochiweb-otp29": 1000.0, "cowboy-otp29": 2000.0})
    row = found["ostinelli-cowboy-leads-mochiweb"].now
    assert (row.verdict, row.direction) == (judging.REPLICATED, judging.REPLICATED)
    found = search("dynamic", SWEPT, {"mochiweb-otp29": 1000.0, "cowboy-otp29": 9000.0}, CLIENT)
    row = found["ostinelli-cowboy-leads-mochiweb"].now
    assert (row.verdict, row.interval) == (judging.UNREACHED, NO_TRIAL)
    assert "a client that is not the limit" in row.why
    found = search("dynamic", SWEPT, {"mochiweb-otp29": 1000.0})
    assert found["ostinelli-cowboy-leads-mochiweb"].now.verdict == judging.NOT_RUN
