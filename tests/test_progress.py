"""How far a dataset is, told from the records of trials that are done."""

import json

import pytest

from deathmatch.control import progress
from deathmatch.errors import UserError
from deathmatch.measure import server
from deathmatch.plan import files, matrix

TRIALS = matrix.trials("full")[:130]


def records(trials, wall_s=None):
    """Return records of the trials, which took what was estimated, or `wall_s` each."""
    usual_s = [progress.seconds(trial) - progress.OVERHEAD_S for trial in trials]
    took_s = usual_s if wall_s is None else [wall_s] * len(trials)
    return {trial: {"wall_us": round(s * 1e6)} for trial, s in zip(trials, took_s, strict=True)}


@pytest.mark.parametrize("done", [0, 1, 130])
def test_what_is_left(done):
    expected = sum(map(progress.seconds, TRIALS[done:]))
    found = progress.left(TRIALS, records(TRIALS[:done]))
    assert found == (done, pytest.approx(expected, rel=1e-6))


def test_the_estimate_follows_what_the_done_ones_took():
    done, wait_s = progress.left(TRIALS, records(TRIALS[:100], wall_s=1))
    scale = 100 * (1 + progress.OVERHEAD_S) / sum(map(progress.seconds, TRIALS[:100]))
    expected = scale * sum(map(progress.seconds, TRIALS[100:]))
    assert (done, wait_s) == (100, pytest.approx(expected))


def test_those_of_another_specification_or_testbed_are_left(tmp_path):
    now, before, elsewhere, never = [trial for trial in TRIALS if trial.experiment == "backlog"][:4]
    for trial in (now, before, elsewhere):
        (tmp_path / trial.path).mkdir(parents=True)
        spec = matrix.spec(trial) | ({"server_sha256": "another"} if trial == before else {})
        record = {"spec": spec, "testbed": "ec2-like" if trial == elsewhere else "netns"}
        (tmp_path / trial.path / "trial.json").write_text(json.dumps(record))
    found = progress.measured([now, before, elsewhere, never], "netns", tmp_path)
    assert list(found) == [now]


def test_a_broken_record_is_named(tmp_path):
    file = tmp_path / TRIALS[0].path / "trial.json"
    file.parent.mkdir(parents=True)
    file.write_text('{"spec":')
    with pytest.raises(UserError, match="not JSON") as raised:
        progress.measured(TRIALS, "netns", tmp_path)
    assert raised.value.where == str(file) and str(file.parent) in raised.value.remedy


def test_a_longer_warm_up_counts():
    name = next(name for name in files.names("server") if server.warm_up_s(name) > 1)
    trial = next(trial for trial in matrix.trials("full") if trial.server == name)
    spec = matrix.spec(trial)
    offering_s = 2 * len(spec["rates_rps"]) * spec["duration_s"]
    warm_up_s = server.warm_up_s(name, spec.get("warm_up_s", 0))
    fixed_s = progress.OVERHEAD_S + progress.START_STOP_S + spec.get("cool_down_s", 0)
    assert progress.seconds(trial) == fixed_s + warm_up_s + offering_s
