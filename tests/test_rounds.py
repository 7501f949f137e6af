"""Adaptive rounds: who goes on, how that is kept, and a small dataset measured so."""

import itertools
import json
import math
import tomllib

import pytest
from conftest import Tree

from deathmatch.analysis import judging, verdict_words
from deathmatch.errors import UserError
from deathmatch.plan import files, matrix, rounds, selection, validation_errors
from deathmatch.plan.dataset import Dataset
from deathmatch.plan.rounds import LOOKS, Decision
from deathmatch.plan.trial import Trial
from deathmatch.run import decision, progress
from deathmatch.run.study import Study

ADAPTIVE = """
title = "adaptive rounds of two experiments"
trials = 3
rounds = "adaptive"
budget_hours = 0.2
seed = 1

[experiments.backlog]
rates_rps = [3000]
duration_s = 2

[[experiments.backlog.grids]]
servers = ["yucan"]
backlog = [5, 128]

[experiments.storage]
messages = [1000]

[[experiments.storage.grids]]
servers = ["python-store"]
configuration = ["dict", "list", "sqlite"]
"""
SPEC = validation_errors.validated(Dataset, tomllib.loads(ADAPTIVE), "quick")


def _dataset(name: str, *root) -> Dataset:
    """Return SPEC in place of the dataset quick."""
    return SPEC if name == "quick" else DATASET(name, *root)


DATASET = files.dataset
with pytest.MonkeyPatch.context() as patch:
    patch.setattr(files, "dataset", _dataset)
    ALL = matrix.trials("quick")
BACKLOG = [trial for trial in ALL if trial.experiment.name == "backlog"]
STORAGE = [trial for trial in ALL if trial.experiment.name == "storage"]
BOTH = [*BACKLOG, *STORAGE]


@pytest.fixture
def adaptive(tmp_path, monkeypatch):
    """The dataset quick in adaptive rounds, whose decisions stand in a folder of the test's."""
    monkeypatch.setattr(files, "dataset", _dataset)
    monkeypatch.chdir(tmp_path)


def names(trials) -> list[str]:
    return sorted({decision.named(trial) for trial in trials})


def of_round(n: int, trials) -> list[Trial]:
    """Return a trial of each variant of these, in that round."""
    fields = ("dataset", "experiment", "plan", "server", "variant")
    first = [trial for trial in trials if trial.n == 1]
    return [Trial(n=n, **{name: getattr(trial, name) for name in fields}) for trial in first]


def row(claim: str, variants: list[str], needed_s: float | None = 60.0, **verdicts: str) -> dict:
    """Return what a decision reads of a ledger's row: an open claim's, unless it says otherwise."""
    found = {"claim": claim}
    for when in verdict_words.WHEN:
        known = {"": verdicts.get(when, judging.OPEN), "_variants": variants, "_needed_s": needed_s}
        found |= {f"{when}{name}": value for name, value in known.items()}
    return found


def decided(rows: list[dict], look: int = 3, budget_s: float | None = None, each_s: float = 10):
    trials = [*BOTH, *(t for n in range(4, look + 1) for t in of_round(n, BOTH))]
    return decision.decide(look, rows, dict.fromkeys(trials, each_s), budget_s)


def test_only_variants_of_open_claims_go_on():
    found = decided([
        row("open", names(BACKLOG)),
        row("told", names(STORAGE), then=judging.NOT, now=judging.REPLICATED),
        row("unreached", names(STORAGE), then=judging.UNREACHED, now=judging.NOT_RUN),
    ])  # fmt: skip
    assert list(found.further) == names(BACKLOG) and found.open == ("open",)
    assert "go on to 5, for 1" in found.why
    assert decided([row("open then", names(BACKLOG), now=judging.NOT)]).further == found.further
    none = decided([row("told", names(BACKLOG), then=judging.NOT, now=judging.NOT)])
    assert none.further == () and none.why.endswith("it ends")


def test_the_budget_goes_to_what_is_told_soonest():
    rows = [row("late", names(STORAGE), 500), row("soon", names(BACKLOG), 50)]
    spent_s = 10 * len(BOTH)
    for_both_s = 2 * 10 * len(names(BOTH))
    assert list(decided(rows, budget_s=spent_s + for_both_s).further) == names(BOTH)
    short = decided(rows, budget_s=spent_s + for_both_s - 1)
    assert list(short.further) == names(BACKLOG) and short.open == ("soon", "late")
    assert "for 1 the budget does not last" in short.why
    over = decided(rows, budget_s=spent_s)
    assert over.further == () and "the budget does not last" in over.why


def test_what_would_take_too_many_trials_is_given_up_from_the_second_look_on():
    rows = [row("hopeless", names(BACKLOG), None)]
    assert decided(rows).further
    assert decided(rows, look=5).further == ()


def test_after_the_last_look_nothing_goes_on():
    found = decided([row("open", names(BACKLOG))], look=LOOKS[-1])
    assert found.further == () and "no further look" in found.why


def test_a_claim_one_side_of_which_has_stopped_gets_no_more_pairs():
    trials = [*BOTH, *of_round(4, STORAGE), *of_round(5, STORAGE)]
    rows = [row("both", names(BOTH)), row("storage", names(STORAGE))]
    found = decision.decide(5, rows, dict.fromkeys(trials, 10.0), None)
    assert list(found.further) == names(STORAGE) and found.open == ("storage",)


# What follows from decisions


def write(look: int, further: list[str], root) -> None:
    rounds.write("quick", Decision(
        look=look, spent_s=1.0, open=(), further=tuple(further), why="planted",
    ), root)  # fmt: skip


@pytest.mark.usefixtures("adaptive")
def test_the_trials_follow_from_the_decisions(tmp_path):
    first = matrix.trials("quick")
    assert {trial.n for trial in first} == {1, 2, 3}
    write(3, names(BACKLOG), tmp_path)
    then = matrix.trials("quick")
    assert then[: len(first)] == first
    assert names(then[len(first) :]) == names(BACKLOG) and {t.n for t in then} == {1, 2, 3, 4, 5}
    assert [trial.n for trial in then] == sorted(trial.n for trial in then)
    write(5, names(BACKLOG)[:1], tmp_path)
    assert len(matrix.trials("quick")) == len(then) + 2
    assert matrix.trials("quick", look=5) == then and matrix.trials("quick", look=3) == first
    # The last of them decides; what stands after it is of an earlier run.
    write(3, [], tmp_path)
    assert matrix.trials("quick") == first
    rounds.forget("quick", 5, tmp_path)
    assert [found.look for found in rounds.decisions("quick")] == [3]
    rounds.file_of("quick", 3).write_text("{")
    with pytest.raises(UserError, match="it holds no decision"):
        matrix.trials("quick")


@pytest.mark.usefixtures("adaptive")
def test_a_run_says_the_round_and_how_long_it_takes_at_most(tmp_path):
    study = Study("quick", "netns", "", selection.of("all", "all"))
    total = len(study.trials)
    said = progress.line(study.standing({}))
    minutes = math.ceil(60 * files.dataset("quick").budget_hours)
    assert said.startswith(f"round 1, 0 of {total} trials, about ")
    assert said.endswith(f" to the look at 3, at most {minutes} min in all")
    done = {trial: {"wall_us": 4_000_000, "outcome": "measured"} for trial in study.trials}
    ready = study.standing(done)
    assert not ready.ended and progress.line(ready).startswith(f"round 3, {total} of {total}")
    write(3, names(BACKLOG), tmp_path)
    study.look_again()
    # Each of them goes on to the look at 5.
    more = 2 * len(names(BACKLOG))
    told = f"round 4, {total} of {total + more} trials"
    assert progress.line(study.standing(done)).startswith(told)
    write(3, [], tmp_path)
    study.look_again()
    assert study.standing(done).ended and progress.line(study.standing(done)).endswith("measured")


# A small one, measured


TINY = """
title = "two stores"
trials = 3
rounds = "adaptive"
budget_hours = 0.1
seed = 1

[experiments.storage]
messages = [1000]

[[experiments.storage.grids]]
servers = ["python-store"]
configuration = ["dict", "sqlite"]
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("trials = 3", "trials = 2", "each variant has 3 trials first, not 2"),
        ("[experiments.storage]", "[experiments.storage]\ntrials = 4", "3 trials first, not 4"),
        ('servers = ["python-store"]', 'servers = ["python-store"]\ntrials = 5', "first, not 5"),
        ('rounds = "adaptive"', 'rounds = "fixed"', "only adaptive rounds have a budget"),
    ],
)
def test_a_dataset_that_contradicts_itself_is_refused(tree: Tree, old, new, said):
    assert TINY.count(old) == 1
    tree.write("config/datasets/tiny.toml", TINY.replace(old, new))
    done = tree.run("python", "-m", "deathmatch", "rounds", "tiny", "3").failed()
    assert said in done.text and "tiny.toml, line" in done.text


def test_rounds_are_measured_as_they_were_decided(tree: Tree):
    tree.write("config/datasets/tiny.toml", TINY)
    said = tree.snakemake("-n", dataset="tiny").succeeded().text
    assert "round 1, 0 of 6 trials" in said
    file = tree.path / "data/tiny/rounds/3.json"
    said = tree.snakemake("data/tiny/rounds/3.json", dataset="tiny").succeeded().text
    assert "after 3 rounds, " in said
    found = json.loads(file.read_text())
    assert found["look"] == 3 and found["spent_s"] > 0

    def measured() -> dict[str, list[int]]:
        files = sorted(tree.path.glob("data/tiny/storage/*/*/*/trial.json"))
        parts = [file.parts for file in files]
        by_variant = itertools.groupby(parts, key=lambda part: part[-3])
        return {name: [int(part[-2]) for part in group] for name, group in by_variant}

    assert list(measured().values()) == [[1, 2, 3]] * 2
    # Whatever was found: what stands in the file is what goes on, in another run too.
    one = next(name for name in measured() if "sqlite" in name)
    more = {"further": [f"storage/python-store/{one}"], "why": "planted"}
    file.write_text(json.dumps(found | more))
    said = tree.snakemake("data/tiny/rounds/5.json", dataset="tiny").succeeded().text
    assert "round 4, 6 of 8 trials" in said and "after 5 rounds, " in said
    assert sorted(measured().values()) == [[1, 2, 3], [1, 2, 3, 4, 5]]
    last = json.loads((tree.path / "data/tiny/rounds/5.json").read_text())
    assert last["further"] in ([], more["further"])
    done = tree.deathmatch("check", "tiny", "--strict", "--json")
    rules = {one["id"]: one for one in json.loads(done.text[done.text.index("{") :])["rules"]}
    assert [name for name in ("DM-ORDER", "DM-MISSING") if rules[name]["found"]] == []
