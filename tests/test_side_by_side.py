"""The tests' own turns: who is alone is alone, and nobody waits for ever."""

import fcntl
import subprocess
import sys
import threading

import pytest
from conftest import HUNG_S, ROOT, wait_for
from hypothesis import given
from hypothesis import strategies as st
from side_by_side import joined, turn


def taken(folder) -> bool:
    with (folder / "next").open() as turnstile:
        try:
            fcntl.flock(turnstile, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_who_waits_to_be_alone_comes_before_those_who_come_later(tmp_path):
    order = []

    def enter(alone: bool) -> None:
        with turn(alone, tmp_path):
            order.append(alone)

    threads = [threading.Thread(target=enter, args=[alone]) for alone in (True, False)]
    with turn(False, tmp_path):
        threads[0].start()
        wait_for(lambda: taken(tmp_path), "it waits at the turnstile")
        threads[1].start()
        assert order == []
    for thread in threads:
        thread.join(HUNG_S)
    assert order == [True, False]


def test_others_are_together(tmp_path):
    with turn(False, tmp_path), turn(False, tmp_path):
        assert not taken(tmp_path)


def test_a_turn_ends_with_its_process(tmp_path):
    script = (
        "import sys, time, pathlib; from side_by_side import turn\n"
        "with turn(True, pathlib.Path(sys.argv[1])): print('in', flush=True); time.sleep(100_000)"
    )
    words = [sys.executable, "-c", script, tmp_path]
    process = subprocess.Popen(words, cwd=ROOT / "tests", stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "in\n"
    process.kill()
    process.communicate()
    with turn(True, tmp_path):
        pass


def test_tests_that_share_a_fixture_are_one_unit():
    units = joined([{"a"}, {"b"}, set(), {"a", "c"}, {"b"}, {"c"}, set()])
    assert units[0] == units[3] == units[5] and units[1] == units[4]
    assert len({units[0], units[1], units[2], units[6]}) == 4


@given(st.lists(st.sets(st.integers(0, 6), max_size=3), max_size=12))
def test_units_share_nothing_and_are_as_small_as_can_be(needs):
    units = joined(needs)
    for a, first in zip(units, needs):
        for b, second in zip(units, needs):
            assert not first & second or a == b
    for unit in set(units):
        own = [members for members, number in zip(needs, units) if number == unit]
        reached = set(own[0])
        while more := {m for s in own if s & reached for m in s} - reached:
            reached |= more
        assert len(own) == 1 or all(members & reached for members in own)


@pytest.mark.parametrize(
    ("words", "workers"), [(["tests/test_stats.py"], 0), (["tests/test_stats.py::x"], 0), ([], 2)]
)
def test_one_file_runs_in_one_process(pytestconfig, monkeypatch, words, workers):
    monkeypatch.setattr(pytestconfig, "args", words or ["tests"])
    assert pytestconfig.hook.pytest_xdist_auto_num_workers(config=pytestconfig) == workers
