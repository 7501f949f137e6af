"""`bench/shares.py`: the shares of a run's time, from planted records and real ones."""

import pytest
from conftest import MINIATURE, bench

from deathmatch.run import state
from deathmatch.run.state import JobTime

shares = bench("shares")

STEPS_US = {
    "testbed": 400_000, "server_start": 300_000, "conformance": 200_000, "check_for_rest": 250_000,
    "warm_up": 1_000_000, "churn": 8_000_000, "offering": 5_600_000, "drain": 50_000,
    "other": 600_000,
}  # fmt: skip


def record(started_at: str, **changes) -> dict:
    wall_us = sum(STEPS_US.values()) - STEPS_US["testbed"]
    return {
        "experiment": "c10k", "started_at": started_at, "spec": {"duration_s": 5.0},
        "points": [{"began_us": 9_100_000}], "offering_us": 5_600_000, "wall_us": wall_us,
        "steps_us": STEPS_US,
    } | changes  # fmt: skip


def test_every_microsecond_of_a_trial_is_of_one_kind():
    trial = shares.spent(record("2026-11-25T10:00:00Z"))
    assert trial.planned_s == 5.0 and trial.warm_up_s == 9.0 and trial.rest_s == 0.25
    assert trial.drain_s == pytest.approx(0.65)
    assert trial.other == {"testbed": 0.4, "server_start": 0.3, "conformance": 0.2, "other": 0.6}
    named_s = trial.planned_s + trial.warm_up_s + trial.rest_s + trial.drain_s
    assert named_s + sum(trial.other.values()) == pytest.approx(trial.wall_s + trial.before_s)


def test_a_record_without_steps_is_read():
    old = record("2026-11-25T10:00:00Z")
    del old["steps_us"]
    trial = shares.spent(old)
    assert trial.planned_s == 5.0 and trial.warm_up_s == 9.1
    assert trial.other == {"unknown": pytest.approx(16.0 - 5.0 - 0.6 - 9.1)}


def test_a_search_and_measuring_without_load_are_planned():
    probes = {"probes": [{"duration_s": 2.0}, {"duration_s": 3.0}]}
    searched = shares.spent(record("2026-11-25T10:00:00Z", offering_us=20_000_000, search=probes))
    assert searched.planned_s == 10.0
    stored = shares.spent(record("2026-11-25T10:00:00Z", spec={"measures": "storage"}))
    assert stored.planned_s == 5.6


def test_time_between_trials_is_not_that_of_a_pause():
    trials = [
        shares.spent(record(f"2026-11-25T10:{at}Z")) for at in ("00:00", "00:18", "30:00", "30:19")
    ]
    short_s, pauses_s = shares.between(trials)
    assert short_s == pytest.approx(18 + 19 - 2 * 16.4)
    assert pauses_s == pytest.approx(30 * 60 - 18 - 16.4)


def test_jobs_side_by_side_count_once():
    jobs = [
        JobTime("quick", "build", "a", 10, 30),
        JobTime("quick", "build", "b", 20, 25),
        JobTime("quick", "build", "c", 40, 45),
    ]
    assert shares.covered_s(jobs) == 25
    kinds = shares.by_kind([], [*jobs, JobTime("quick", "notebook", "d", 50, 51)], 47)
    assert (kinds["builds"], kinds["tables and paper"], kinds["set-up"]) == (25, 1, 47)
    assert "builds                        25.0 s   34.2%" in shares.table(kinds)


def test_times_of_jobs_and_set_up_are_read_as_written(tmp_path, monkeypatch):
    assert shares.job_times(tmp_path) == [] and shares.set_up_s_of(tmp_path) == 0
    jobs = [
        JobTime("quick", "trial", "data/quick/x/y/schedulers=one,backlog=5/1/trial.json", 1, 2.5),
        JobTime("quick", "notebook", "a", 3, 4),
    ]
    monkeypatch.chdir(tmp_path)
    for job in jobs:
        state.add_job(job)
    assert shares.job_times(tmp_path) == jobs
    (tmp_path / shares.SET_UP).write_text("40\tPython packages: run\n7\tload generators\n")
    assert shares.set_up_s_of(tmp_path) == 47


def test_records_are_read_from_an_archive(tmp_path):
    (tmp_path / "storage").symlink_to(MINIATURE / "storage")
    read = shares.records(tmp_path)
    assert {record["experiment"] for record in read} == {"storage"}
    assert shares.steps_table([shares.spent(record) for record in read]).startswith(
        f"storage, {len(read)} trials: "
    )
