"""The progress of a dataset, from the records of its trials: in a line, and at a run's end."""

import json
import re
from collections import Counter

import polars as pl
import pytest
from conftest import ROOT

from deathmatch.data import table_files, tables
from deathmatch.errors import UserError
from deathmatch.plan import files, matrix
from deathmatch.run import cli_config, exit_summary, progress, run_trial
from deathmatch.run.state import Run, clock
from deathmatch.run.study import Study

TRIALS = matrix.trials("full")[:130]
MEASURED = json.loads(next((ROOT / "tests/data/yucan").rglob("trial.json")).read_text())
SETTINGS = {"testbed": "netns", "servers": "null", "experiments": "all"}


def study(given: dict) -> Study:
    """Return the study that these settings ask for."""
    return cli_config.study(cli_config.settings(given))


def records(trials, wall_s=None, outcome="measured"):
    """Return records of the trials, which took what was estimated, or `wall_s` each."""
    estimated_s = [progress.seconds(trial) - progress.OVERHEAD_S for trial in trials]
    took_s = estimated_s if wall_s is None else [wall_s] * len(trials)
    return {
        trial: {"wall_us": round(s * 1e6), "outcome": outcome}
        for trial, s in zip(trials, took_s, strict=True)
    }


def record(trial, root, **changed):
    """Write a whole record of the trial, as it is specified now, with what is changed."""
    file = root / trial.path / "trial.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    now = {"spec": json.loads(trial.spec_text()), "testbed": "netns", "points": []}
    file.write_text(json.dumps(MEASURED | now | changed))
    return file


@pytest.mark.parametrize("done", [1, 130])
def test_the_time_left_is_that_of_the_trials_left(done):
    expected = sum(map(progress.seconds, TRIALS[done:]))
    found = progress.standing(TRIALS, records(TRIALS[:done]))
    assert (found.done, found.failed, found.total) == (done, 0, 130)
    assert found.wait_s == pytest.approx(expected, rel=1e-6)


def test_on_a_machine_twice_as_slow_the_rest_takes_twice_as_long():
    done = records(TRIALS[:100])
    wait_s = progress.standing(TRIALS, done).wait_s
    slow = {
        trial: each | {"wall_us": 2 * each["wall_us"] + progress.OVERHEAD_S * 1_000_000}
        for trial, each in done.items()
    }
    assert progress.standing(TRIALS, slow).wait_s == pytest.approx(2 * wait_s, rel=0.1)


def test_one_trial_does_not_decide_the_estimate():
    planned_s = sum(map(progress.seconds, TRIALS[1:]))

    def left(wall_s):
        return progress.standing(TRIALS, records(TRIALS[:1], wall_s)).wait_s

    assert 0.5 * planned_s <= left(0.1) <= planned_s
    longer = 6000 / progress.seconds(TRIALS[0])
    assert longer > 4 and planned_s <= left(6000) <= 0.5 * longer * planned_s


def test_a_trial_that_failed_is_done_and_no_measure_of_time():
    planned_s = sum(map(progress.seconds, TRIALS[60:]))
    now = progress.standing(TRIALS, records(TRIALS[:60], 0.1, "did not start"))
    assert (now.done, now.failed) == (60, 60) and now.wait_s == pytest.approx(planned_s)
    assert progress.line(now).startswith("60 of 130 trials, 60 failed, about ")


def test_trials_of_another_specification_or_testbed_are_due(tmp_path):
    now, before, elsewhere, never = TRIALS[:4]
    record(now, tmp_path)
    record(before, tmp_path, spec=before.spec() | {"server_sha256": "0" * 64})
    record(elsewhere, tmp_path, testbed="lab")
    four = [now, before, elsewhere, never]
    assert list(progress.specified(four, tmp_path)) == [now, elsewhere]
    assert list(progress.measured(four, "netns", tmp_path)) == [now]


def test_a_trial_of_another_testbed_counts_against_mixed_toolchains_if_it_stays(
    tmp_path, monkeypatch
):
    """Not if this run measures it again."""
    monkeypatch.chdir(ROOT)
    whole = study(SETTINGS | {"dataset": "full", "experiments": "backlog"})
    part = study(SETTINGS | {"dataset": "full", "experiments": "backlog", "servers": "yaws"})
    own = next(trial for trial in part.trials)
    far = next(trial for trial in whole.trials if trial.server.name == "null")
    monkeypatch.chdir(tmp_path)
    tools = MEASURED["tools"]
    record(own, tmp_path, tools=tools | {"harness": {"httperf": "1"}})
    record(far, tmp_path, testbed="lab", tools=tools | {"harness": {"httperf": "2"}})
    with pytest.raises(UserError, match="two toolchains would be mixed: httperf is"):
        part.check_toolchain(here=False)
    whole.check_toolchain(here=False)


def test_a_trial_reads_no_more_records_than_it_needs_to_compare_tools(tmp_path, monkeypatch):
    """The records of its own server, and one readable record of another server."""
    monkeypatch.chdir(tmp_path)
    trials = [trial for trial in TRIALS if trial.n == 1]
    many = Counter(trial.server.name for trial in trials)
    mine = next(trial for trial in trials if many[trial.server.name] > 1)
    own = [trial for trial in trials if trial.server == mine.server and trial != mine]
    others = [
        trial for trial in trials
        if trial.server != mine.server and trial.experiment == mine.experiment
    ]  # fmt: skip
    assert own and len(others) > 3
    for trial in own:
        record(trial, tmp_path)
    for trial in others:
        record(trial, tmp_path).write_text("{")
    assert list(run_trial.comparable(mine, trials, "netns")) == own
    record(others[1], tmp_path)
    assert set(run_trial.comparable(mine, trials, "netns")) == {others[1], *own}


def test_the_line_after_a_trial_reads_its_record_only(run, tmp_path):
    """The other records may be broken by then."""
    first, second = run.study.trials[:2]
    for number, trial in enumerate((first, second)):
        file = record(trial, tmp_path)
        run.started(number, "trial", [str(file.relative_to(tmp_path))], [])
        assert f"{number + 1} of " in run.ended(number)
        file.write_text("{")


def test_a_record_that_is_not_whole_is_named_and_not_counted(tmp_path):
    """The error names the file, the key and the remedy of each."""
    trials = TRIALS[:4]
    files = [record(trial, tmp_path) for trial in trials]
    files[0].write_text('{"spec":')
    whole = json.loads(files[1].read_text())
    files[1].write_text(json.dumps({key: whole[key] for key in whole if key != "outcome"}))
    files[2].write_text("[]")
    point = {"offered_rate_rps": 1, "log": "x", "fresh_start": True, "client_state": "exit 0"}
    record(trials[3], tmp_path, points=[point])
    with pytest.raises(UserError) as raised:
        progress.measured(TRIALS, "netns", tmp_path)
    said = str(raised.value)
    assert f"{files[0]}: not JSON" in said and f"{files[2]}: not a JSON object" in said
    assert f"{files[1]}, key outcome: this key is missing" in said
    assert f"{files[3]}, key points.0.server_state: this key is missing" in said
    for file in files:
        assert f"remove {file.parent}, and it is measured again" in said


@pytest.mark.parametrize("searches", [False, True])
def test_a_longer_warm_up_counts_at_each_start(searches):
    trial = next(
        one for one in TRIALS
        if bool(one.search) is searches and one.warm_up_s == one.server.warm_up_s
    )  # fmt: skip
    slow = trial.server.model_copy(update={"warm_up_s": trial.server.warm_up_s + 7})
    longer = trial.model_copy(update={"server": slow})
    assert progress.seconds(longer) == progress.seconds(trial) + 7 * (1 + searches)


@pytest.fixture
def now() -> list[float]:
    """The time of the run's clock, which tests set."""
    return [0.0]


@pytest.fixture
def run(tmp_path, monkeypatch, now) -> Run:
    """A run of one server of a dataset that has many, in an empty folder."""
    monkeypatch.chdir(ROOT)
    chosen = study(SETTINGS | {"dataset": "full", "experiments": "backlog"})
    assert 2 < len(chosen.trials) < len(TRIALS)
    monkeypatch.chdir(tmp_path)
    return Run(chosen, clock=lambda: now[0])


def test_each_trial_that_ends_is_counted_among_the_chosen_ones(run, now, tmp_path):
    """Their number is that of the line before the run starts."""
    trials = run.study.trials
    assert f": 0 of {len(trials)} trials, about " in run.study.summary()
    for number, trial in enumerate(trials, 1):
        now[0] += 61
        outcome = "did not start" if number == 1 else "measured"
        file = record(trial, tmp_path, outcome=outcome)
        run.started(number, "trial", [str(file.relative_to(tmp_path))], ["a.log"])
        said = run.ended(number)
        of = f"{number} of {len(trials)} trials, 1 failed"
        assert said.startswith(f"[{clock(61 * number)}, {of}")
        assert said.endswith(
            f"] {trial.experiment.name} {trial.server.name} {trial.variant} #{trial.n}: {outcome}"
        )
    assert "left" not in said and "all measured" not in said
    assert run.ended(0) is None


def test_a_checkout_that_changes_while_it_measures_is_reported_once(run, tmp_path):
    said = []
    commits = ("a1", "a1", "a1-dirty", "a1-dirty", None, "a1")
    for number, (trial, commit) in enumerate(zip(run.study.trials, commits)):
        file = record(trial, tmp_path, machine=MEASURED["machine"] | {"commit": commit})
        run.started(number, "trial", [str(file.relative_to(tmp_path))], [])
        said.append(run.ended(number))
    warned = [number for number, line in enumerate(said) if "the checkout has changed" in line]
    assert warned == [2, 5]
    assert "a1, now a1-dirty" in said[2]
    assert "a1-dirty, now a1." in said[5]


def test_what_is_left_has_the_builds_before_the_next_trial(run):
    run.unbuilt = {"null": files.server("null"), "ws-null": files.server("ws-null")}
    trials_s = sum(map(progress.seconds, run.study.trials))
    before_s = [progress.builds_s(run.unbuilt.values())]
    for number, name in enumerate(("ws-null", "null")):
        run.started(number, "build", [f"build/servers/{name}/build.json"], [])
        run.ended(number)
        before_s.append(run.standing.wait_s - trials_s)
    assert before_s[0] > before_s[1] > 0 == pytest.approx(before_s[2])


def last_three(run, stopped=False):
    *before, paper, failed, todo = exit_summary.lines(run, stopped).splitlines()
    starts = [line[:8] for line in (paper, failed, todo)]
    assert starts == ["report: ", "failed: ", "next:   "]
    return "\n".join(before), paper, failed, todo


def test_the_end_of_a_run_names_the_next_command(run, tmp_path):
    chosen = "./shell snakemake --config dataset=full servers=null experiments=backlog"
    _, paper, failed, todo = last_three(run, stopped=True)
    assert "none yet" in paper and f"{chosen} continues where this run stopped" in todo
    assert f"nothing; 0 of {len(run.study.trials)} trials measured, " in failed
    for number, trial in enumerate(run.study.trials):
        bad = {"outcome": "did not start", "reason": "no such luck\nat all"} if not number else {}
        record(trial, tmp_path, **bad)
        run.started(number, "trial", [f"{trial.path}/trial.json"], [])
        run.ended(number)
    before, _, failed, todo = last_three(run)
    assert "servers/null: did not start, in 1 trial:\n    no such luck\n    at all" in before
    assert "servers/null did not start, in 1 trial: no such luck; see data/full/backlog/" in failed
    assert f"fix servers/null, then {chosen}" in todo and "retry --config dataset=full" in todo
    # Each failure is reported once.
    run.started(-1, "complete", ["data/full/complete"], ["c.log"])
    run.broke(-1)
    assert last_three(run)[0] == ""
    run.started(-2, "notebook", ["paper/full/notebooks/01-backlog.ipynb"], ["build/logs/n.log"])
    run.broke(-2)
    _, _, failed, todo = last_three(run)
    assert "notebook 01-backlog, its log build/logs/n.log; and 1 more" in failed
    assert "fix the cause in the log" in todo
    run.failed.clear()
    record(run.study.trials[0], tmp_path)
    for path in run.study.paper:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")
    run.records |= progress.measured(run.study.trials, "netns")
    run.standing = progress.standing(run.study.trials, run.records)
    _, paper, failed, todo = last_three(run)
    assert paper.endswith("paper/full/report.html and paper/full/report.pdf")
    assert "nothing; " in failed and todo.endswith("xdg-open paper/full/report.html")


@pytest.mark.parametrize("limited", [False, True])
def test_the_end_of_a_run_has_each_named_server_with_its_number_or_the_reason(
    run, tmp_path, monkeypatch, miniature, limited
):
    for trial in run.study.trials:
        record(trial, tmp_path)
    run.records |= progress.measured(run.study.trials, "netns")
    run.standing = progress.standing(run.study.trials, run.records)
    for table in ("trials", "points"):
        frame = tables.read(miniature, "backlog", table).filter(server="null")
        if table == "points" and limited:
            frame = frame.with_columns(client_limited=pl.lit(True), limit=pl.lit("client"))
        tables.write(frame, "backlog", table, tmp_path / "data/full/backlog")
    monkeypatch.setattr(table_files, "ROOT", tmp_path)
    before, _, failed, todo = last_three(run)
    if not limited:
        assert re.fullmatch(r"result: null in backlog: reply rate in overload .*\d.* req/s", before)
        assert failed.startswith("failed: nothing; ")
        return
    why = r"client-limited at (\d+) of \1 points"
    assert re.fullmatch(f"result: null in backlog: no usable number, {why}", before)
    assert re.fullmatch(f"failed: servers/null has no usable number in backlog: {why}", failed)
    assert "end other work on this machine, remove data/full/backlog/null; " in todo
