"""Overloads: planted servers of a known capacity, which too short a load does not show."""

import json

import polars as pl
import pytest
from conftest import MINIATURE, Tree, bench, instead
from planted import ASKED, Planted, searched

from deathmatch.analysis import selecting
from deathmatch.analysis.by_trial import Values
from deathmatch.capacity_search import search
from deathmatch.data import probes, records, tables
from deathmatch.load import registry
from deathmatch.measure.many_connections import Limits, Placement, placement
from deathmatch.plan import files, matrix
from deathmatch.quantities.quantity import RATE, REPLY

CAPACITY_RPS, TIMEOUT_S = 2000, 0.5
# The least that a testbed may ask for: one process cannot hold the overload.
DESCRIPTORS = 1024
SHARES = [1.2, 1.5]
OVERLOADED = ASKED | {"overload_shares": SHARES, "overload_s": 10}


def test_multiples_of_the_capacity_are_offered_last():
    end, made = searched(Planted(5000, 7), OVERLOADED)
    last = [offer for offer, _ in made][-2:]
    assert [offer.step for offer in last] == [search.OVERLOAD] * 2
    assert [(offer.share, offer.duration_s) for offer in last] == [(1.2, 10), (1.5, 10)]
    assert [offer.rate_rps for offer in last] == [round(share * end.rate_rps) for share in SHARES]
    probes, load_s = search.usual(OVERLOADED)
    assert (probes, load_s) == (search.usual(ASKED)[0] + 2, search.usual(ASKED)[1] + 20)
    _, limited = searched(Planted(30_000, 1, client_rps=12_000), OVERLOADED)
    assert search.OVERLOAD not in [offer.step for offer, _ in limited]
    # An overload has the trial's own time-out, and nothing else has.
    asked_s = [search.load_of(step, {"timeout_s": 5}) for step in (search.OVERLOAD, search.TRIAL)]
    assert asked_s == [{"timeout_s": 5}, {"timeout_s": search.TIMEOUT_S}]


@pytest.mark.parametrize(("most_open", "opened", "processes", "addresses"), [
    (1000, 2000, 1, 1),
    # 1.5 times 6,000 requests a second, 5 s until the time-out, 10 s of load.
    (45_000, 90_000, 3, 2),
    (150_000, 300_000, 8, 5),
    # Fewer addresses than one for each connection opened, and enough for those open at a time.
    (600_000, 1_200_000, 31, 15),
])  # fmt: skip
def test_an_overload_is_held_by_several_processes_and_addresses(
    most_open, opened, processes, addresses
):
    spare = tuple(f"10.78.0.{n}" for n in range(1, 15))
    found = placement(most_open, opened, Limits(20_000, 64_512, ("10.77.0.2",), spare))
    assert (found.processes, len(found.sources)) == (processes, addresses)
    assert found.sources[0] == "10.77.0.2" and len(set(found.sources)) == addresses


def test_the_limit_of_a_host_that_cannot_hold_an_overload_is_named():
    one = Limits(20_000, 64_512, ("10.77.0.2",))
    assert placement(60_000, 120_000, one) == Placement(4, ("10.77.0.2",))
    assert placement(70_000, 140_000, one) == "1 source addresses have 64,512 ports each"
    few = placement(45_000, 90_000, Limits(1024, 64_512, ("a",)))
    assert "a process may open 1,024 files" in few


def test_every_backlog_of_the_light_client_is_searched_and_no_other_client():
    trials = matrix.trials("full", experiments=["backlog"])
    asked = [trial for trial in trials if trial.search]
    assert {trial.load_generator for trial in asked} == {registry.LIGHT}
    assert len({trial.variant.factors["backlog"] for trial in asked}) > 4
    assert {trial.search["overload_s"] for trial in asked} == {10}


def searched_trials(found_rps: float, answered: float | None) -> dict:
    """Return the tables of trials that answered a rate in full and found more by a search.

    Of an overload of 1.5 times the capacity they answered that share of the capacity; None: they
    had no overload.
    """
    points = tables.read(MINIATURE.name, "single-thread", "points").filter(
        pl.col("server") == "null", pl.col(RATE) <= 10_000
    )
    keys = points.select(*tables.keys("single-thread")).unique(maintain_order=True)
    named = keys.with_columns(variant=pl.col("variant") + ",load_generator=roundtrip")
    replies_rps, share = found_rps * (answered or 0), 1.5 if answered else 0.9
    offered = {
        "duration_us": 10_000_000, "client_limited": False, "server_state": "ran",
        "report": "whole", "step": search.OVERLOAD if answered else search.COST,
        RATE: round(share * found_rps), "capacity_share": share,
        "replies": round(10 * replies_rps) if answered else 1000, "server_cpu_ns": 5_000_000,
        REPLY: replies_rps, "outcome": search.FOUND, "capacity_rps": found_rps,
    }  # fmt: skip
    rows = [key | offered for key in named.to_dicts()]
    made = pl.DataFrame(rows, schema=tables.columns("single-thread", "probes"), orient="row")
    names = (MINIATURE.name, "single-thread")
    return {(*names, "points"): points, (*names, "probes"): made}


@pytest.mark.parametrize("answered", [None, 0.8, 1.5])
def test_claims_take_the_results_of_a_search(answered, miniature):
    """The capacity, the cost of a reply at a share of it, and the replies at a multiple of it."""

    def values(statistic: str, **more: float) -> Values:
        rule = {"server": "null", "statistic": statistic} | more
        return selecting.values(MINIATURE.name, "single-thread", rule)

    with instead(searched_trials(30_000, answered)):
        assert values("capacity_rps").all == [30_000] * 3
        cost = values("cpu_us_per_reply", capacity_share=0.9)
        overload = values("reply_rate_overload_rps", capacity_share=1.5)
        errors = values("error_ratio", capacity_share=1.5)
        swept = values("reply_rate_overload_rps")
    assert cost.all == ([5] * 3 if answered is None else [])
    assert overload.all == ([] if answered is None else [30_000 * answered] * 3)
    # A server that answers an overload in full was not overloaded.
    assert overload.at_least == (overload.blocks if answered == 1.5 else frozenset())
    assert errors.all == pytest.approx([] if answered is None else [1 - answered / 1.5] * 3)
    assert swept.all == pytest.approx([10_000] * 3, rel=0.01) and swept.at_least == swept.blocks


def broken_by_the_load(tree: Tree) -> list[str]:
    """Return the checks of commands, reports, searches and tables that a dataset does not pass."""
    done = tree.deathmatch("check", "mine", "--strict", "--json")
    found = json.loads(done.text[done.text.index("{") :])["findings"]
    looked = {"DM-COMMAND", "DM-WHOLE", "DM-SEARCH", "DM-TABLES"}
    return [one["check"] for one in found if one["check"] in looked]


PLANTED = f"""
title = "a planted overload"
trials = 1
seed = 1

[experiments.backlog]
rates_rps = [100]
duration_s = 1
warm_up_rate_rps = 100

[experiments.backlog.search]
probe_s = 0.5
probes = 12
margin = 1.3
cost_shares = [0.5]
overload_shares = [1.5]
overload_s = {4 * TIMEOUT_S:g}

[[experiments.backlog.grids]]
servers = ["planted-paced"]
backlog = [5]
load_generator = ["roundtrip"]
"""


# The values that claims take from a search: the capacity, and the reply rate in an overload.
VALUES = """
from deathmatch.analysis import selecting
server = {"server": "planted-paced", "backlog": 5}
for rule in ({"statistic": "capacity_rps"},
             {"statistic": "reply_rate_overload_rps", "capacity_share": 1.5}):
    known = selecting.values("mine", "backlog", server | rule)
    print(*known.all, bool(known.at_least))
"""


@pytest.mark.alone
def test_a_planted_capacity_is_found_and_exceeded(tree: Tree):
    """Through a whole run, and derived again from its table.

    The overload is offered to the variant's own backlog, by two processes. Other work on this
    machine may make the search find none; it does not change what is planted.
    """
    words = f"-DPACED_RPS={CAPACITY_RPS} -include paced_send.h"
    bench("limits").plant_server(tree.path, "planted-paced", words, "paced_send.h")
    tree.replace("experiments/backlog.toml", "timeout_s = 5", f"timeout_s = {TIMEOUT_S}")
    few = f"descriptors = {DESCRIPTORS}"
    tree.replace("config/testbeds/netns.toml", "descriptors = 65536", few)
    tree.write("config/datasets/mine.toml", PLANTED)
    tree.snakemake(
        "data/mine/backlog/probes.parquet", "data/mine/backlog/points.parquet", dataset="mine"
    ).succeeded()
    folder = tree.path / "data/mine/backlog"
    (file,) = (path for path in folder.glob("*/*/*/trial.json") if registry.FACTOR in str(path))
    record, frame = records.read(file), pl.read_parquet(folder / "probes.parquet")
    tables.check(frame, "backlog", "probes", "here")
    recorded = record["search"]
    assert len(frame) == len(recorded["probes"]) > 0
    results = [probes.result(row) for row in frame.to_dicts()]
    offers, end = search.replayed(record["spec"]["search"], results)
    assert [offer.rate_rps for offer in offers] == frame[RATE].to_list()
    assert (end.outcome, end.rate_rps) == (recorded["outcome"], recorded["rate_rps"])
    if recorded["outcome"] != search.FOUND:
        others = (search.OTHER_LOAD, "the client, not the server, was the limit")
        assert recorded["reason"].startswith(others)
        return
    capacity_rps = recorded["rate_rps"]
    assert capacity_rps == pytest.approx(CAPACITY_RPS, rel=0.15)
    (over,) = frame.filter(step=search.OVERLOAD).to_dicts()
    assert (over["capacity_share"], over["duration_us"]) == (1.5, 4e6 * TIMEOUT_S)
    assert over[RATE] == round(1.5 * capacity_rps)
    assert over["errors_client_timeout"] > 0 and over[REPLY] < 1.1 * CAPACITY_RPS
    deepest = max(files.experiment("backlog").factors["backlog"].levels)
    assert over["accept_queue_limit"] == 5
    assert set(frame.filter(pl.col("step") != search.OVERLOAD)["accept_queue_limit"]) == {deepest}
    (offered,) = (probe for probe in recorded["probes"] if probe["step"] == search.OVERLOAD)
    assert [client["client"] for client in offered["clients"]] == ["client-1", "client-2"]
    assert not broken_by_the_load(tree)
    shown = tree.run("python", "-c", VALUES).succeeded().text.split()
    found = [float(text) for text in (shown[0], shown[2])]
    assert found == pytest.approx([capacity_rps, over[REPLY]], rel=1e-6)
    assert shown[1::2] == ["False", "False"]
