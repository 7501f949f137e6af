"""A run in odd surroundings: the result is right all the same, or the message is clear."""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import place
import polars as pl
import pytest
from conftest import AS_ROOT, Done, wait_for

pytestmark = [pytest.mark.chaos, pytest.mark.alone]

TABLE = "data/tiny/backlog/trials.parquet"
STEP_BACK = Path(__file__).with_name("step_back.c")
# A folder's name in Greek and Chinese.
FOREIGN = "μετρήσεις-测量"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A place in a folder of foreign name, for all tests that leave it as it was."""
    if not AS_ROOT:
        pytest.skip("disks, mounts and users are changed by root")
    folder = tmp_path_factory.mktemp("odd") / FOREIGN
    folder.mkdir()
    one = place.make(folder)
    one.tree.dataset("tiny", ["null"], [100], duration_s=0.2, trials=2)
    yield one
    one.leave()


@pytest.fixture
def odd(made: place.Place):
    """The place, in which nothing is measured yet."""
    for name in ("data/tiny", ".snakemake"):
        shutil.rmtree(made.tree.path / name, ignore_errors=True)
    return made


def right(done: Done, one: place.Place) -> None:
    """A run that has measured all, and left nothing."""
    done.succeeded()
    assert "Traceback" not in done.text, done.text
    assert len(pl.read_parquet(one.tree.path / TABLE)) == 2
    for path in one.tree.path.glob("data/tiny/*/*/*/[0-9]*/trial.json"):
        record = json.loads(path.read_text())
        assert record["outcome"] == "measured" and record["wall_us"] > 0, record
    assert one.temporary() == []


def run(one: place.Place, *before: str, **environment: str) -> Done:
    """Run Snakemake behind the words `before`, which exec it, with more in its environment."""
    words = ["env", *(f"{key}={value}" for key, value in environment.items()), *before]
    return one.start(*words, "snakemake", TABLE, "--config", "dataset=tiny").done()


@pytest.mark.parametrize("locale", ["C", "tr_TR.UTF-8"])
def test_a_path_in_other_scripts_and_another_locale(odd: place.Place, tmp_path: Path, locale: str):
    subprocess.run(["localedef", "-i", "tr_TR", "-f", "UTF-8", tmp_path / "tr_TR.UTF-8"],
                   capture_output=True)  # fmt: skip
    assert (tmp_path / "tr_TR.UTF-8" / "LC_CTYPE").exists()
    # Without UTF-8 mode Python would still coerce C: that is what users have.
    right(run(odd, LC_ALL=locale, LOCPATH=str(tmp_path)), odd)


def test_umask_that_lets_nobody_else_read(odd: place.Place):
    right(run(odd, "sh", "-c", 'umask 077; exec "$@"', "sh"), odd)


@pytest.mark.parametrize("descriptors", [64, 256])
def test_descriptors_run_out(odd: place.Place, descriptors: int):
    done = run(odd, "prlimit", f"--nofile={descriptors}:{descriptors}")
    if done.status == 0:
        right(done, odd)
    else:
        assert "Traceback" not in done.text, done.text
        assert f"a process may open {descriptors} files, 100 are needed" in done.text
        assert "prlimit --pid $$ --nofile=100, then run again" in done.text


def test_an_interrupt_before_anything_is_begun_is_one_line(odd: place.Place):
    going = odd.snakemake(dataset="smoke")
    wait_for(lambda: going.over() or "Building DAG" in going.output.read_text(), "it reads")
    os.killpg(going.pid, signal.SIGINT)
    done = going.done().failed()
    assert done.status == 130 and done.text.endswith("interrupted before the first job\n")
    assert odd.temporary() == []


def test_clock_that_is_set_back(odd: place.Place, tmp_path: Path):
    """By an hour, after a first trial: nothing is measured twice, no time is negative."""
    library, switch = tmp_path / "step_back.so", tmp_path / "back"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", STEP_BACK, "-o", library], check=True)
    words = ["env", f"LD_PRELOAD={library}", f"STEP_BACK={switch}"]
    going = odd.start(*words, "snakemake", TABLE, "--config", "dataset=tiny")
    wait_for(lambda: going.over() or odd.finished("tiny"), "a first trial")
    first = odd.finished("tiny")
    switch.touch()
    right(going.done(), odd)
    assert first.items() <= odd.finished("tiny").items()
    again = odd.start(*words, "snakemake", TABLE, "--config", "dataset=tiny").done()
    assert "Nothing to be done" in again.text, again.text
