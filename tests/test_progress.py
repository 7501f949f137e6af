"""How far a dataset is, told from the records of trials that are done."""

import json

import pytest

from deathmatch.control import progress
from deathmatch.errors import UserError
from deathmatch.plan import matrix

TRIALS = matrix.trials("full")[:130]


def records(trials, wall_s=None):
    """Return records of the trials, which took what was estimated, or `wall_s` each."""
    estimated_s = [progress.seconds(trial) - progress.OVERHEAD_S for trial in trials]
    took_s = estimated_s if wall_s is None else [wall_s] * len(trials)
    return {trial: {"wall_us": round(s * 1e6)} for trial, s in zip(trials, took_s, strict=True)}


@pytest.mark.parametrize("done", [0, 1, 130])
def test_what_is_left(done):
    expected = sum(map(progress.seconds, TRIALS[done:]))
    found = progress.left(TRIALS, records(TRIALS[:done]))
    assert found == (done, pytest.approx(expected, rel=1e-6))


def test_on_a_machine_twice_as_slow_the_rest_takes_twice_as_long():
    done = records(TRIALS[:100])
    _, wait_s = progress.left(TRIALS, done)
    slow = {
        trial: {"wall_us": 2 * record["wall_us"] + progress.OVERHEAD_S * 1_000_000}
        for trial, record in done.items()
    }
    assert progress.left(TRIALS, slow) == (100, pytest.approx(2 * wait_s))


def test_those_of_another_specification_or_testbed_are_left(tmp_path):
    now, before, elsewhere, never = [
        trial for trial in TRIALS if trial.experiment.name == "backlog"
    ][:4]
    for trial in (now, before, elsewhere):
        (tmp_path / trial.path).mkdir(parents=True)
        spec = trial.spec() | ({"server_sha256": "another"} if trial == before else {})
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
    trial = TRIALS[0]
    slow = trial.server.model_copy(update={"warm_up_s": trial.server.warm_up_s + 7})
    longer = trial.model_copy(update={"server": slow})
    assert progress.seconds(longer) == progress.seconds(trial) + 7


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
