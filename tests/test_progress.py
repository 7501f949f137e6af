"""How far a dataset is, told from the records of trials that are done."""

import json
import math

import pytest

from deathmatch import config, matrix, progress, server

TRIALS = matrix.trials("full")[:130]


def write(root, trials, wall_s=None):
    for trial in trials:
        (root / trial.path).mkdir(parents=True)
        seconds = progress.seconds(trial) - progress.OVERHEAD_S if wall_s is None else wall_s
        record = json.dumps({"wall_us": round(seconds * 1e6)})
        (root / trial.path / "trial.json").write_text(record)


@pytest.mark.parametrize("done", [0, 1, 49, 50, 51, 130])
def test_what_is_left(tmp_path, done):
    write(tmp_path, TRIALS[:done])
    expected = sum(map(progress.seconds, TRIALS[done:]))
    assert progress.left(TRIALS, tmp_path) == (done, pytest.approx(expected, rel=1e-6))


def test_the_estimate_follows_what_the_done_ones_took(tmp_path):
    write(tmp_path, TRIALS[:100], wall_s=1)
    done, wait_s = progress.left(TRIALS, tmp_path)
    sampled = TRIALS[:100:2]
    scale = len(sampled) * (1 + progress.OVERHEAD_S) / sum(map(progress.seconds, sampled))
    expected = scale * sum(map(progress.seconds, TRIALS[100:]))
    assert (done, wait_s) == (100, pytest.approx(expected))


def test_few_records_are_read(tmp_path):
    """Those that are passed over are not even JSON."""
    write(tmp_path, TRIALS)
    step = math.ceil(len(TRIALS) / progress.SAMPLED)
    for place, trial in enumerate(TRIALS):
        if place % step:
            (tmp_path / trial.path / "trial.json").write_text("not JSON")
    assert progress.left(TRIALS, tmp_path) == (len(TRIALS), 0)


def test_a_longer_warm_up_counts():
    name = next(name for name in config.names("server") if server.warm_up_s(name) > 1)
    trial = next(trial for trial in matrix.trials("full") if trial.server == name)
    spec = matrix.spec(trial)
    offering_s = 2 * len(spec["rates_rps"]) * spec["duration_s"]
    warm_up_s = server.warm_up_s(name, spec.get("warm_up_s", 0))
    fixed_s = progress.OVERHEAD_S + progress.START_STOP_S + spec.get("cool_down_s", 0)
    assert progress.seconds(trial) == fixed_s + warm_up_s + offering_s
