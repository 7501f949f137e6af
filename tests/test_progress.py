"""How far a dataset is, told from the records of trials that are done."""

import json

import pytest

from deathmatch.control import progress
from deathmatch.errors import UserError
from deathmatch.plan import matrix

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


def test_trials_that_took_twice_as_long_double_what_is_left():
    trials = TRIALS[:100]
    _, wait_s = progress.left(TRIALS, records(trials))
    slower = {
        trial: {"wall_us": 2 * one["wall_us"] + 1_000_000 * progress.OVERHEAD_S}
        for trial, one in records(trials).items()
    }
    assert progress.left(TRIALS, slower) == (100, pytest.approx(2 * wait_s, rel=1e-6))


def test_those_of_another_specification_or_testbed_are_left(tmp_path):
    trials = [trial for trial in TRIALS if trial.experiment.name == "backlog"]
    now, before, elsewhere, never = trials[:4]
    for trial in (now, before, elsewhere):
        (tmp_path / trial.path).mkdir(parents=True)
        changed = {"server_sha256": "another"} if trial == before else {}
        spec = json.loads(trial.spec_text()) | changed
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
    """Between two trials that differ in their server only."""
    slow = "netty"
    trials = [trial for trial in matrix.trials("full") if trial.experiment.name == "single-thread"]
    first = {name: next(t for t in trials if t.server.name == name) for name in (slow, "null")}
    extra_s = first[slow].warm_up_s - first["null"].warm_up_s
    assert extra_s > 10
    assert progress.seconds(first[slow]) - progress.seconds(first["null"]) == extra_s


def test_each_finished_trial_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trials = TRIALS[:3]
    told = progress.Progress(trials, {}, "netns")
    for number, trial in enumerate(trials, 1):
        trial.path.mkdir(parents=True)
        file = trial.path / "trial.json"
        record = {"spec": json.loads(trial.spec_text()), "testbed": "netns", "wall_us": 1_000_000}
        file.write_text(json.dumps(record))
        said = told.finished([str(file)])
        assert said.startswith(f"[{number} of 3 trials, ")
        assert said.endswith(
            f"] {trial.experiment.name} {trial.server.name} {trial.variant} #{trial.n}"
        )
    assert "all measured" in said
    assert told.finished(["data/full/backlog/points.parquet"]) is None
