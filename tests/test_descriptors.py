"""What a wait costs by the number of idle descriptors: what is timed, and what is made of it."""

import json

import pytest
from conftest import ROOT, Tree, traces

from deathmatch.analysis import descriptor_cost
from deathmatch.analysis.committed import Record
from deathmatch.instruments import descriptors as command
from deathmatch.instruments import waits


def record(hot_ns: dict[int, int], cold_ns: dict[int, int]) -> Record:
    """Two repetitions, the second of which takes a tenth longer."""
    rows = [
        {
            "mechanism": mechanism, "state": state, "idle": idle, "repetition": n, "waits": 9,
            "wait_ns": wait_ns * (10 + n) * (1 if mechanism == "poll" else 2) // 11,
        }
        for mechanism in ("poll", "select")
        for state, waits in (("hot", hot_ns), ("cold", cold_ns))
        for idle, wait_ns in waits.items()
        for n in (1, 2)
    ]  # fmt: skip
    return Record(ROOT / "data/descriptors/x.json", {}, rows)


FITS_NOT = record({0: 1100, 10: 2200, 100: 110000}, {0: 11000, 10: 22000, 100: 121000})


BENT = {0: 1100, 10: 2200, 100: 110000}


def test_a_descriptor_costs_what_it_adds_to_a_wait_over_none():
    each = descriptor_cost.waits(FITS_NOT)
    hot = each.filter(mechanism="poll", state="hot", repetition=1).sort("idle")
    assert hot["each_ns"].to_list() == [None, 110, 1089]
    assert hot["wait_us"].to_list() == [1.1, 2.2, 110]
    curves = descriptor_cost.curves(each, "poll")
    assert curves["state", "idle"].rows() == [("hot", 100), ("cold", 100)]
    table = descriptor_cost.table(each)
    assert table.columns == ["mechanism", "state", "0", "10", "100"]
    assert table.row(2)[:3] == ("poll", "hot", pytest.approx(1.15))


def test_growth_is_what_one_descriptor_of_many_costs_over_one_of_few():
    each = descriptor_cost.waits(FITS_NOT)
    assert descriptor_cost.growth(each, "poll", 10, 100).estimate == pytest.approx(9.9)
    assert descriptor_cost.growth(each, "poll", 10, 100, "cold").estimate == pytest.approx(1)
    assert descriptor_cost.between(each, "hot", 100).estimate == pytest.approx(2)
    both = descriptor_cost.waits(record(BENT, BENT))
    assert descriptor_cost.growth(both, "poll", 10, 100, "cold").estimate == pytest.approx(9.9)
    flat = {0: 1100, 10: 2200, 100: 12100}
    straight = descriptor_cost.waits(record(flat, flat))
    assert descriptor_cost.growth(straight, "poll", 10, 100).estimate == pytest.approx(1)


def test_real_waits(tree: Tree):
    """Of two hundred and fifty connections, which leave nothing; poll looks at each of them."""
    before = traces()
    words = ["mine", "--most", "250", "--repetitions", "1"]
    done = tree.deathmatch("descriptors", *words).succeeded()
    assert "1 lives of up to 250 idle connections" in done.text
    found = json.loads((tree.path / "data/descriptors/mine.json").read_text())
    readings = found["readings"]
    levels = command.levels(250)
    cases = len(waits.MECHANISMS) * len(waits.STATES)
    assert len(readings) == cases * len(levels) and levels[-1] == 250
    assert all(one["wait_ns"] > 0 for one in readings)
    hot = {
        (one["mechanism"], one["idle"]): one["wait_ns"]
        for one in readings
        if one["state"] == waits.HOT
    }
    for mechanism in ("select", "poll"):
        assert hot[mechanism, 250] > 3 * hot[mechanism, 0]
    assert hot["epoll", 250] < hot["poll", 250]
    assert traces() == before


def test_fewer_than_the_limit_of_open_files_allows(tree: Tree):
    limited = Tree(tree.path, ["prlimit", "--nofile=300:300", *tree.enter], tree.environment)
    words = ["mine", "--repetitions", "1"]
    done = limited.deathmatch("descriptors", *words).succeeded()
    assert "at most 64 descriptors: the limit of open files" in done.text
