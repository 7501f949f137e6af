"""A run is killed at any time: only finished trials stay, and the next run completes the rest.

    ./shell pytest -m chaos tests/chaos

DEATHMATCH_CHAOS_KILLS says how often (50), DEATHMATCH_CHAOS_SEED with which luck (1). Each series
is a dataset of six short trials and one build: some runs of it are harmed, the last one is not.
"""

import json
import os
import random
import re
import shutil
import time
from collections import Counter

import harm
import place
import polars as pl
import pytest
from conftest import AS_ROOT, wait_for

pytestmark = [pytest.mark.chaos, pytest.mark.alone]

KILLS = int(os.environ.get("DEATHMATCH_CHAOS_KILLS", "50"))
SEED = int(os.environ.get("DEATHMATCH_CHAOS_SEED", "1"))
OF_A_SERIES = 5
SERVERS, TRIALS = ["null", "mine"], 3
TABLE = "data/chaos/backlog/trials.parquet"
# About what one takes on a quiet machine.
TRIAL_S = 2.0
# From so many on, the next run measures all anew: one more harm would come too late.
ENOUGH = len(SERVERS) * TRIALS - 2
# A run prints it once it has read the Snakefile; output before that is Snakemake's own.
READ = "dataset chaos, "
# Snakemake makes these before it reads the Snakefile, and leaves them if it is killed then.
SNAKEMAKES_OWN = re.compile(r"^tmp/snakemake\w+$|/snakemake-runtime-cache/tmp")
HARMS = harm.drawn(SEED, KILLS)
SERIES = [HARMS[first : first + OF_A_SERIES] for first in range(0, KILLS, OF_A_SERIES)]
TALLY: Counter = Counter()


@pytest.fixture(scope="module")
def field(tmp_path_factory):
    if not AS_ROOT:
        pytest.skip("a full disk is made by root")
    made = place.make(tmp_path_factory.mktemp("chaos"))
    # Slow enough to be killed in its midst.
    made.tree.server("mine", "ok", build="sleep 0.5; cc --version >{build}/made; sleep 0.5")
    made.tree.dataset("chaos", SERVERS, [50, 100], duration_s=0.3, trials=TRIALS)
    yield made
    made.leave()
    print(f"survived: {dict(sorted(TALLY.items()))}")


@pytest.mark.parametrize("number", range(len(SERIES)))
def test_the_next_run_completes_a_killed_one(field: place.Place, number: int):
    luck = random.Random(SEED * 1000 + number)
    machine, kept = field.machine(), {}
    begin(field, kept)
    for one in SERIES[number]:
        harmed(field, one, luck, machine, kept)
    field.snakemake(TABLE, dataset="chaos").done().succeeded()
    assert field.machine() == machine
    assert [path for path in field.temporary() if not SNAKEMAKES_OWN.search(path)] == []
    finished = field.finished("chaos")
    assert kept.items() <= finished.items()
    assert len(finished) == len(SERVERS) * TRIALS
    for path in finished:
        record = json.loads((field.tree.path / path / "trial.json").read_text())
        assert record["outcome"] != "not built", path
        assert all(point.get("client_state") == "exit 0" for point in record["points"]), path
    table = pl.read_parquet(field.tree.path / TABLE)
    assert len(table) == len(table.unique(["server", "n"])) == len(finished)
    again = field.snakemake(TABLE, "-n", dataset="chaos").done().succeeded()
    assert "Nothing to be done" in again.text


def harmed(
    field: place.Place, one: harm.Harm, luck: random.Random, machine: dict, kept: dict[str, str]
) -> None:
    """Harm a run, wait until it has ended, and see what is left; `kept` gets what had finished."""
    if len(field.finished("chaos")) >= ENOUGH or one.kind == harm.BUILD:
        begin(field, kept)
    going = field.snakemake(TABLE, dataset="chaos")
    wait_for(lambda: going.over() or reached(field, going, one, len(kept)), "the harm is due")
    time.sleep(one.delay * TRIAL_S)
    before = field.finished("chaos")
    with harm.done(one, field, going, luck) as what:
        done = going.done()
    text = f"{one}: {what}\n{done.text}"
    print(text)
    assert field.machine() == machine, text
    assert kept.items() <= before.items() <= field.finished("chaos").items(), text
    if one.kind == harm.DISK or (one.kind == harm.INTERRUPT and READ in done.text):
        assert "Traceback" not in done.text, text
    TALLY[one.kind if what else f"{one.kind}: too late"] += 1
    kept |= field.finished("chaos")


def begin(field: place.Place, kept: dict[str, str]) -> None:
    """Have the next run build and measure all."""
    kept.clear()
    shutil.rmtree(field.tree.path / "data" / "chaos", ignore_errors=True)
    shutil.rmtree(field.tree.path / "build" / "servers" / "mine", ignore_errors=True)


def reached(field: place.Place, going: place.Going, one: harm.Harm, there: int) -> bool:
    """Return whether the run is where the harm's delay begins."""
    if one.after < 0:
        return True
    if one.after == 0:
        return READ in going.output.read_text(errors="replace")
    return len(field.finished("chaos")) >= there + one.after
