"""The tests' own turns and order: who is alone is alone and comes last."""

import fcntl
import os
import re
import subprocess
import sys
import threading

from conftest import HUNG_S, ROOT, wait_for
from side_by_side import LONGEST, QUICK, turn


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


def test_each_file_that_is_named_is_there():
    assert [name for name in (*LONGEST, *QUICK) if not (ROOT / "tests" / name).is_file()] == []


def test_the_longest_come_first_and_who_is_alone_comes_last(tmp_path):
    files = {
        "conftest.py": "from side_by_side import pytest_collection_modifyitems\n",
        "test_a.py": "import pytest\n\n@pytest.mark.alone\ndef test_alone(): pass\n",
        "test_b.py": "def test_other(): pass\n",
        LONGEST[0]: "def test_long(): pass\n",
        "pytest.ini": "[pytest]\nmarkers = alone\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    own = {
        "PYTHONPATH": str(ROOT / "tests"), "PYTEST_ADDOPTS": "",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider"],
        cwd=tmp_path, env=os.environ | own, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    ran = re.findall(r"::test_(\w+) PASSED", done.stdout)
    assert ran == ["long", "other", "alone"]
