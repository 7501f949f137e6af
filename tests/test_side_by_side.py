"""The tests' own turns: who is alone is alone, and nobody waits for ever."""

import fcntl
import importlib.util
import os
import re
import subprocess
import sys
import threading

import pytest
from conftest import HUNG_S, ROOT, first_line, wait_for
from hypothesis import given
from hypothesis import strategies as st
from side_by_side import LONGEST, QUICK, WORKERS, joined, turn


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
    assert first_line(process) == "in\n"
    process.kill()
    process.communicate()
    with turn(True, tmp_path):
        pass


def test_each_file_that_is_named_is_there():
    assert [name for name in (*LONGEST, *QUICK) if not (ROOT / "tests" / name).is_file()] == []


def test_tests_that_share_a_fixture_are_one_unit():
    units = joined([{"a"}, {"b"}, set(), {"a", "c"}, {"b"}, {"c"}, set()])
    assert units[0] == units[3] == units[5] and units[1] == units[4]
    assert len({units[0], units[1], units[2], units[6]}) == 4


@pytest.mark.skipif(not importlib.util.find_spec("xdist"), reason="nixpkgs is not known to hold it")
def test_a_worker_begins_with_the_longest_and_ends_with_who_is_alone(tmp_path):
    """Real workers, with the options of ./shell: not with the unit that has the most tests."""
    files = {
        "conftest.py": "from side_by_side import pytest_collection_modifyitems\n",
        "test_a.py": "import pytest\n\n@pytest.mark.alone\ndef test_alone(): pass\n",
        "test_b.py": "import pytest\n\n@pytest.fixture(scope='module')\ndef one(): pass\n\n"
        "@pytest.mark.parametrize('n', range(5))\ndef test_of_many(one, n): pass\n",
        LONGEST[0]: "def test_long(): pass\n",
        "pytest.ini": "[pytest]\nmarkers = alone\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-n", "1", "-p", "xdist", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env=os.environ
        | {"PYTHONPATH": str(ROOT / "tests"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    ran = re.findall(r"PASSED \S*::test_(\w+)", done.stdout)
    assert ran == ["long", *["of_many"] * 5, "alone"]


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
    ("words", "workers"),
    [(["tests/test_stats.py"], 0), (["tests/test_stats.py::x"], 0), ([], WORKERS)],
)
def test_one_file_runs_in_one_process(pytestconfig, monkeypatch, words, workers):
    monkeypatch.setattr(pytestconfig, "args", words or ["tests"])
    assert pytestconfig.hook.pytest_xdist_auto_num_workers(config=pytestconfig) == workers
