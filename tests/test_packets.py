"""Who is charged for packet processing: what is set, read and made of it."""

import json

import polars as pl
import pytest
from conftest import ROOT, Tree, traces

from deathmatch.analysis import committed, packet_cost
from deathmatch.analysis.committed import Record
from deathmatch.errors import UserError
from deathmatch.hosts import packets
from deathmatch.instruments import packets as instrument
from deathmatch.instruments.packet_threads import Threads


def record(*rows: tuple) -> Record:
    names = list(packet_cost.SCHEMA)
    return Record(ROOT / "data/packets/x.json", {}, [dict(zip(names, row)) for row in rows])


MEASURED = record(
    ("fast", "plain", 1, 100, 2_000_000, None, None),
    ("fast", "threaded", 1, 100, 1_000_000, 3_000_000, 500_000),
    ("fast", "plain", 2, 100, 4_000_000, None, None),
    ("fast", "threaded", 2, 100, 1_000_000, 3_000_000, 700_000),
    ("slow", "threaded", 1, 100, 9_000_000, 1_000_000, 500_000),
    ("slow", "plain", 1, 100, 20_000_000, None, None),
)


def test_cpu_time_per_reply_is_that_of_processes_and_of_threads():
    each = packet_cost.per_reply(MEASURED)
    assert each["server_us"].to_list() == [20, 10, 40, 10, 90, 200]
    assert each["whole_us"].to_list() == [20, 40, 40, 40, 100, 200]
    table = packet_cost.table(each)
    assert table["server", "mode"].rows() == [
        ("fast", "plain"), ("fast", "threaded"), ("slow", "plain"), ("slow", "threaded"),
    ]  # fmt: skip
    assert table["median"].to_list() == [30, 10, 200, 90]
    assert table["client_thread_us"].to_list() == [None, 6, None, 5]


def test_bias_pairs_repetitions():
    each = packet_cost.per_reply(MEASURED)
    found = packet_cost.bias(each, "fast")
    assert (found.trials, found.estimate) == (2, 0.75)
    assert packet_cost.bias(each, "slow").estimate == 2


def test_every_way_of_every_server_in_an_order_that_is_drawn():
    planned = instrument.readings(["a", "b"], 3)
    assert len(set(planned)) == len(planned) == 2 * 3 * len(packets.MODES)
    first, second = ([(one.server, one.mode) for one in planned[at : at + 6]] for at in (0, 6))
    assert set(first) == set(second) and first != second
    assert planned == instrument.readings(["a", "b"], 3)


def test_masks_and_names_of_threads():
    assert packets.mask([0, 1, 5]) == "23"
    assert packets.side("napi/server0-81\n") == "server"
    assert packets.side("napi/client0-82\n") == "client"
    assert packets.side("kworker/0:1\n") is None


def test_what_threads_ran_between_two_moments():
    looks = [("server", 10, 5), ("server", 30, 9), ("client", 30, 1), ("server", 50, 20)]
    threads = Threads({}, looks)
    assert threads.between_ns("server", 12, 49) == 4
    assert threads.between_ns("server", 12, 50) == 15
    assert threads.between_ns("client", 12, 50) is None


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"about": {}, "readings": '])
def test_a_broken_record_is_named(text, monkeypatch, tmp_path):
    monkeypatch.setattr("deathmatch.analysis.committed.ROOT", tmp_path)
    file = tmp_path / "data" / "packets" / "mine.json"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    with pytest.raises(UserError, match="deathmatch packets mine"):
        committed.load("packets", "mine")


def test_real_readings_of_every_way(tree: Tree):
    """One of the null server each, which leaves nothing."""
    before = traces()
    words = ["mine", "--server", "null", "--repetitions", "1", "--duration", "2", "--rate", "500"]
    done = tree.deathmatch("packets", *words).succeeded()
    assert "3 readings of 500 connections a second" in done.text
    found = json.loads((tree.path / "data/packets/mine.json").read_text())
    assert found["about"]["rate_rps"] == 500 and "null" in found["about"]["versions"]["null"]
    assert {one["mode"] for one in found["readings"]} == set(packets.MODES)
    assert all(one["replies"] == 1000 for one in found["readings"])
    by_mode = {one["mode"]: one for one in found["readings"]}
    assert by_mode["plain"]["server_thread_cpu_ns"] is None
    threaded = by_mode["threaded"]
    assert min(threaded["server_thread_cpu_ns"], threaded["client_thread_cpu_ns"]) > 0
    each = packet_cost.per_reply(Record(tree.path, {}, found["readings"]))
    assert each.filter(pl.col("server_us") <= 0).is_empty()
    assert traces() == before
