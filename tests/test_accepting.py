"""How connections are accepted: what the server counts, and what is made of it."""

import json
from argparse import Namespace

import pytest
from conftest import ROOT, Tree, traces

from deathmatch.analysis import accepting, queue_model
from deathmatch.analysis.provenance import Record
from deathmatch.errors import UserError
from deathmatch.instruments import accepting as instrument
from deathmatch.instruments.instrument import drawn


def row(accept: str, threads: int, backlog: int, work_us: int, repetition: int, **own) -> dict:
    counted = {
        "rate_rps": 6000, "accepted": 100, "waits": 300, "empty_accepts": 50,
        "voluntary_switches": 640, "other_switches": 3, "cpu_us": 25_000, "had_us": [[9, 100]],
        "replies": 100,
    }  # fmt: skip
    asked = {"accept": accept, "threads": threads, "backlog": backlog, "work_us": work_us}
    return asked | {"repetition": repetition} | counted | own


def record(*rows: dict) -> Record:
    return Record(ROOT / "data/accepting/x.json", {}, list(rows))


def test_a_herd_is_told_by_its_switches():
    every = accepting.frame(record(
        row("several", 16, 4096, 0, 1, voluntary_switches=130),
        row("herd", 16, 4096, 0, 1),
        row("herd", 16, 4096, 0, 2, voluntary_switches=660),
        row("herd", 1, 4096, 0, 1, voluntary_switches=90),
        row("one", 1, 128, 200, 1),
    ))  # fmt: skip
    found = accepting.herd(every)
    assert found["threads"].to_list() == [1, 16, 16]
    assert found["median"].to_list() == [0.9, 6.5, 1.3]
    assert found["way"].to_list()[1:] == [accepting.WAY["herd"], accepting.WAY["several"]]
    assert found["waits"].to_list() == [3, 3, 3] and found["cpu_us"].to_list() == [250] * 3


def test_a_wait_is_compared_with_what_a_full_queue_takes():
    every = accepting.frame(record(
        row("one", 1, 32, 200, 1, had_us=[[8250, 100]]),
        row("one", 1, 32, 200, 2, had_us=[[8250, 100]], cpu_us=20_000),
        row("one", 1, 32, 200, 1, rate_rps=2000, had_us=[[40, 99], [90, 1]]),
        row("herd", 16, 4096, 0, 1),
    ))  # fmt: skip
    each = accepting.waits(every)
    assert each["service_us"].to_list() == [250, 200, 250]
    assert each["full_us"].to_list()[0] == 250 * queue_model.linux_places(32)
    assert each["p99_us"].to_list() == [8250, 8250, 40]
    assert accepting.full(each, 32).estimate == pytest.approx((1 + 1.25) / 2)
    curves = accepting.curves(each)
    assert curves["median"].to_list() == [40, 8250, pytest.approx(225 * 33)]
    assert curves["load"].to_list()[-1] == accepting.FULL and curves["load"].n_unique() == 3


def test_every_reading_in_an_order_that_is_drawn():
    readings = instrument.readings(Namespace(threads=[1, 16], backlog=[8, 32, 32]))
    planned = drawn(readings, 2)
    half = len(planned) // 2
    assert len(set(planned)) == len(planned) == 2 * (2 * 3 + 2 * 3)
    assert planned == drawn(readings, 2)
    kinds = [[(one.accept, one.threads, one.backlog, one.rate_rps) for one in part]
             for part in (planned[:half], planned[half:])]  # fmt: skip
    assert set(kinds[0]) == set(kinds[1]) and kinds[0] != kinds[1]


@pytest.mark.parametrize("said", ["$ acceptors\n", "", '$ acceptors\n{"accepted": 1, '])
def test_a_server_without_an_account_is_told(tmp_path, said):
    log = tmp_path / "server.log"
    log.write_text(said)
    with pytest.raises(UserError, match="no account"):
        instrument.account(log)


def test_real_readings(tree: Tree):
    """Each connection has its place in the account, and the herd is woken more often."""
    before = traces()
    words = ["mine", "--repetitions", "1", "--duration", "1", "--threads", "16"]
    words += ["--backlog", "16", "--backlog", "512"]
    done = tree.deathmatch("accepting", *words).succeeded()
    assert "9 readings" in done.text
    found = json.loads((tree.path / "data/accepting/mine.json").read_text())
    assert "acceptors" in found["about"]["version"]
    every = accepting.frame(Record(tree.path, {}, found["readings"]))
    assert len(every) == 9
    for one in found["readings"]:
        timed = sum(count for _, count in one["had_us"])
        # Some were accepted only, as when it was seen whether the server listens.
        assert 0 < one["replies"] <= timed <= one["accepted"], one
    herd = {(one["way"], one["threads"]): one for one in accepting.herd(every).to_dicts()}
    way = accepting.WAY
    assert herd[way["herd"], 16]["median"] > herd[way["several"], 16]["median"]
    each = accepting.waits(every)
    longest = {
        backlog: each.filter(backlog=backlog, rate_rps=instrument.RATES_RPS[-1])["median_us"].item()
        for backlog in (16, 512)
    }
    # What a full queue takes is 32 times as long; this machine may do other work.
    assert longest[512] > 5 * longest[16]
    assert traces() == before
