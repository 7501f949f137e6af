"""A dataset in sittings: planned, judged, refused and repeated, and when it is complete."""

import datetime as dt
import json
import re
import shutil
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from conftest import Tree

from deathmatch.agent.kernel import MODES
from deathmatch.analysis import claims, findings
from deathmatch.data import refusal, sittings
from deathmatch.data.sittings import Attempt
from deathmatch.data.strict import dataset_checks
from deathmatch.data.strict.evidence import Evidence
from deathmatch.errors import UserError
from deathmatch.plan import files, validation_errors
from deathmatch.plan.dataset import Dataset, Refusal
from deathmatch.plan.selection import Choice
from deathmatch.quantities.quantity import RATE
from deathmatch.run import sittings as run_sittings

GRIDS = [{"servers": ["null"]}, {"servers": ["yucan"], "trials": 5}]
WHOLE = {
    "title": "a test", "trials": 3, "seed": 1,
    "experiments": {"backlog": {"rates_rps": [100], "duration_s": 5, "grids": GRIDS}},
}  # fmt: skip
FIRST = {"name": "first", "experiment": "backlog", "rounds": [1, 3]}
SECOND = {"name": "second", "experiment": "backlog", "rounds": [4, 5]}
MEASURED = Attempt(
    "first", 1, "2026-11-28T10:00:00Z", "2026-11-28T11:30:00Z", "A, family 1 model 2", "6.1", "c1",
    1.5, 40, {"stolen": 0.001}, "",
)  # fmt: skip


def planned(**keys) -> Dataset:
    return validation_errors.validated(Dataset, WHOLE | keys, "mine.toml", name="mine")


def test_each_round_has_its_sitting():
    spec = planned(sittings=[FIRST, SECOND])
    found = [spec.sitting_of("backlog", n) for n in range(1, 7)]
    assert found == ["first"] * 3 + ["second"] * 2 + [None]
    whole = planned(sittings=[{"name": "all", "experiment": "backlog"}])
    assert whole.sitting_of("backlog", 5) == "all" and planned().sitting_of("backlog", 1) is None
    third = SECOND | {"name": "third", "rounds": [4]}
    apart = [FIRST | {"rounds": [1, 3, 5]}, SECOND | {"rounds": [2]}, third]
    assert planned(sittings=apart).sitting_of("backlog", 4) == "third"


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ([FIRST, FIRST | {"experiment": "c10k", "name": "x"}], "no experiment 'c10k'; it has back"),
        ([FIRST, SECOND | {"rounds": [3, 5]}], "round 3 of backlog is in two sittings, in 'first'"),
        ([FIRST], "round 4 of backlog is in no sitting"),
        ([FIRST, SECOND | {"rounds": [4, 6]}], "backlog has rounds 1 to 5, and no round 6"),
        ([FIRST, SECOND | {"name": "first"}], "two sittings have the name 'first'"),
    ],
)
def test_rounds_in_two_sittings_or_in_none_are_refused(wrong, what):
    with pytest.raises(UserError) as said:
        planned(sittings=wrong)
    assert str(said.value).startswith("mine.toml: ") and what in str(said.value)


PLAN = """
title = "a test"
trials = 3
seed = 1
# of it

[[sittings]]
name = "first"
experiment = "backlog"
rounds = [1, 2]

[[sittings]]
name = "second"
experiment = "backlog"
rounds = [3]

[experiments.backlog]
rates_rps = [200]
duration_s = 0.5

[[experiments.backlog.grids]]
servers = ["null"]
"""


@pytest.fixture
def begun(tmp_path):
    """A function that adds attempts to an empty dataset of two sittings, and returns its root."""
    for folder in ("config/datasets", "data/mine"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "config" / "datasets" / "mine.toml").write_text(
        PLAN.replace("# of it", "stop_after_h = 4")
    )

    def add(*tried: Attempt) -> Path:
        for one in tried:
            sittings.add("mine", one, tmp_path)
        return tmp_path

    return add


def test_a_dataset_is_complete_once_all_its_sittings_are_in(begun):
    root = begun(replace(MEASURED, refused="stolen"))
    assert sittings.lacking("mine", root) == ["first", "second"]
    begun(replace(MEASURED, attempt=2))
    assert sittings.lacking("mine", root) == ["second"] and sittings.accepted("mine", root)
    begun(replace(MEASURED, sitting="second", hours=0.5))
    assert sittings.lacking("mine", root) == []
    assert [one.attempt for one in sittings.attempts("mine", root)] == [1, 2, 1]


def test_after_the_hours_of_the_stop_rule_a_dataset_is_complete(begun):
    """The hours of refused sittings count."""
    root = begun(MEASURED, replace(MEASURED, attempt=2, hours=2.4, refused="stolen"))
    assert sittings.lacking("mine", root) == ["first", "second"]
    begun(replace(MEASURED, attempt=3, hours=0.1))
    assert sittings.lacking("mine", root) == []


@pytest.mark.parametrize("decide", [claims.ledger, findings.evaluate])
def test_claims_and_findings_wait_for_all_sittings(monkeypatch, decide):
    monkeypatch.setattr(sittings, "lacking", lambda dataset: ["second", "third"])
    with pytest.raises(UserError, match="it lacks 2 sittings: second, third"):
        decide("reference")


BEGAN = dt.datetime(2026, 11, 28, tzinfo=dt.UTC)
BOUNDS = Refusal(other_load=0.05, stolen=0.005, null_drift=0.2)


def tables_of(
    costs_us: list[float], *, other: int = 0, stolen_us: int = 0, first: int = 1
) -> dict[str, pl.DataFrame]:
    """Return points and trials of the null server and of another, a round for each cost.

    At 100 requests a second a reply costs half or twice as much, by chance; `other` points of the
    other server show other load.
    """
    chance = np.random.default_rng(1)
    rounds = range(first, first + len(costs_us))
    points = [
        {
            "server": server, "variant": "default", "n": n, RATE: rate,
            "replies": replies,
            "server_cpu_ns": round(
                1e3 * replies * cost * (chance.choice([0.5, 2]) if rate == 100 else 1)
            ),
            "limit": "other load" if server == "yucan" and n - first < other else "none",
            "client_limited": False, "server_wait_ratio": 0.0,
            **{f"cpu_{mode}_us": 1_000_000 for mode in MODES}, "cpu_steal_us": stolen_us,
        }
        for n, cost in zip(rounds, costs_us)
        for server in ("null", "yucan")
        for rate, replies in ((100, 1000), (1000, 10_000), (0, 50_000))
    ]  # fmt: skip
    trials = [
        {"server": server, "variant": "default", "n": n, "cpu": "A",
         "started_at": BEGAN + n * dt.timedelta(hours=1)}
        for n in rounds
        for server in ("null", "yucan")
    ]  # fmt: skip
    return {"points": pl.DataFrame(points), "trials": pl.DataFrame(trials)}


@pytest.mark.parametrize(
    ("planted", "said"),
    [
        (tables_of([20, 20, 21, 20, 19, 20]), ""),
        # One slow trial among others, and a drift within the bound.
        (tables_of([20, 21, 40, 22, 23, 23.5]), ""),
        (tables_of([20, 20, 21, 23, 25, 25]), "reply changed by 25.0%, of 20.0% at most"),
        (tables_of([25, 25, 21, 23, 18, 18]), "reply changed by 28.0%, of 20.0% at most"),
        (tables_of([20] * 6, other=2), "other load limits 16.7% of its points, of 5.0% at most"),
        (tables_of([20] * 20, other=1), ""),
        (tables_of([20] * 6, stolen_us=50_000), "took 0.7% of the CPU time, of 0.5% at most"),
        (tables_of([20] * 6, stolen_us=30_000), ""),
    ],
)
def test_a_planted_disturbance_is_refused_and_a_sound_sitting_is_not(planted, said):
    found = refusal.numbers("backlog", planted["points"])
    why = refusal.why(found, BOUNDS)
    assert (said in why and ";" not in why) if said else why == ""
    assert refusal.why(found, None) == ""


@pytest.mark.parametrize(("now", "drift"), [([22], 0.1), ([30], 0.5), ([20, 25], 0.25)])
def test_a_sitting_of_one_round_is_compared_with_those_before(now, drift):
    own, before = (
        tables["points"] for tables in (tables_of(now, first=5), tables_of([19, 20, 26]))
    )
    found = refusal.numbers("backlog", own, lambda: before)
    assert found["null_drift"] == pytest.approx(drift)


def test_a_number_without_a_column_is_no_reason_to_refuse():
    points = tables_of([20, 40])["points"].with_columns(server_wait_ratio=pl.lit(None, pl.Float64))
    assert refusal.numbers("backlog", points)["other_load"] is None
    store = pl.DataFrame({"server": ["null"], "messages": [1000]})
    assert {*refusal.numbers("storage", store).values()} == {None}


def test_the_drift_over_sittings(monkeypatch):
    """Each server at one load, against the first sitting that was measured."""
    early, late = tables_of([20, 20, 22]), tables_of([30, 31], first=4)
    both = {name: pl.concat([late[name], early[name]]) for name in early}
    monkeypatch.setattr(refusal.files, "dataset", lambda name: planned(sittings=[FIRST, SECOND]))
    monkeypatch.setattr(refusal.table_files, "path_of", lambda *parts: Path(__file__))
    monkeypatch.setattr(refusal.tables, "read", lambda dataset, name, table: both[table])
    rows = refusal.drift("mine", ["yucan"]).filter(server="null").to_dicts()
    shown = [(row["sitting"], row[RATE], row["trials"], row["ratio"]) for row in rows]
    assert shown == [("first", 0, 3, 1.0), ("second", 0, 2, pytest.approx(30.5 / 20))]


def test_a_trial_of_no_kept_sitting_is_rejected(monkeypatch):
    latest = {"first": replace(MEASURED, trials=2), "second": replace(MEASURED, refused="stolen")}
    monkeypatch.setattr(sittings, "latest", lambda dataset: latest)
    where = "data/mine/backlog/null/default"
    evidence = Evidence(Path("data/mine"), planned(sittings=[FIRST, SECOND]), {}, [])

    def found(*rounds: int) -> list[str]:
        evidence.found = {f"{where}/{n}" for n in rounds}
        return [one.where for one in dataset_checks.in_sittings(evidence)]

    assert found(1, 2) == []
    assert found(1, 2, 4) == [f"{where}/4"]
    assert found(1) == ["data/mine/sittings.json"]


def test_a_run_that_would_mix_machines_in_a_round_names_other_rounds(monkeypatch):
    monkeypatch.setattr(
        run_sittings.files, "dataset", lambda name: planned(sittings=[FIRST, SECOND])
    )
    monkeypatch.setattr(sittings, "accepted", lambda dataset: frozenset())

    def record(where: str, n: int, kernel: str) -> tuple[str, dict]:
        return where, {"experiment": "backlog", "n": n, "machine": {"kernel": kernel}}

    there = record("data/mine/backlog/null/default/2", 2, "6.1")
    with pytest.raises(UserError) as said:
        run_sittings.check_machine("mine", [there, record("this machine now", 2, "6.2")])
    assert "kernel is\n    6.1   (data/mine/backlog/null/default/2)" in str(said.value)
    assert "rm -r data/mine/backlog/*/*/2" in said.value.remedy
    assert said.value.remedy.endswith("snakemake --config dataset=mine sitting=second")
    run_sittings.check_machine("mine", [there, record("this machine now", 4, "6.2")])


def test_a_sitting_of_more_than_two_hours_is_a_mistake_of_its_file(monkeypatch):
    trials = [{"servers": ["null"], "trials": 400}]
    plan = {"backlog": {"rates_rps": [100], "duration_s": 10, "grids": trials}}
    long = {"name": "long", "experiment": "backlog", "rounds": [2, 400]}
    spec = planned(experiments=plan, sittings=[FIRST | {"rounds": [1]}, long])
    monkeypatch.setattr(files, "dataset", lambda name: spec)
    with pytest.raises(UserError, match=r"the sitting long takes about .* h with builds") as said:
        run_sittings.check("mine", Choice(), [], only_paper=False)
    assert said.value.where == "config/datasets/mine.toml, key sittings.1"


DATA = "data/tiny"


def kept(tree: Tree) -> list[tuple[str, int, bool]]:
    rows = json.loads((tree.path / DATA / "sittings.json").read_text())
    return [(row["sitting"], row["attempt"], bool(row["refused"])) for row in rows]


def records(tree: Tree) -> int:
    return len(list(tree.path.glob(f"{DATA}/backlog/*/*/*/trial.json")))


def rounds(tree: Tree) -> list[int]:
    table = pl.read_parquet(tree.path / DATA / "backlog" / "trials.parquet")
    return sorted(table["n"].to_list())


def test_two_sittings_one_of_them_refused_and_repeated(tree: Tree):
    """The null server's CPU time differs between any two trials: a bound of 0 always refuses."""
    plan = "config/datasets/tiny.toml"
    tree.write(plan, PLAN.replace("# of it", "[refuse]\nnull_drift = 0"))
    chosen = {"dataset": "tiny", "sitting": "first"}
    said = tree.snakemake(**chosen).failed().text
    assert "first is refused: the servers' CPU time for each reply changed by" in said
    assert "sitting=first repeats first" in said
    assert kept(tree) == [("first", 1, True)] and records(tree) == 0
    with tarfile.open(tree.path / DATA / "refused" / "first-1.tar.xz") as aside:
        names = [name for name in aside.getnames() if name.endswith("/trial.json")]
        record = json.loads(aside.extractfile(names[0]).read())
    assert len(names) == 2 and record["dataset"] == "tiny"
    said = tree.snakemake("-n", **chosen).succeeded().text
    assert re.search(r"first +backlog +1-2 +2 +0\.\d .*refused: the servers' CPU time", said)
    assert (
        re.search(r"second +backlog +3 +1 +0\.\d .*not measured", said) and "0 of 2 trials" in said
    )

    tree.replace(plan, "null_drift = 0\n", "stolen = 1.0\n")
    said = tree.snakemake(**chosen).succeeded().text
    assert "missing: second" in said and "sitting=second continues" in said
    assert kept(tree)[1:] == [("first", 2, False)] and records(tree) == 2
    assert (tree.path / DATA / "backlog" / "raw.tar.xz").is_file()
    said = tree.checked(only_paper=True, dataset="tiny").failed().text
    assert "sitting=second" in said
    assert "the sitting first is measured 20" in tree.checked(**chosen).failed().text

    # A fresh clone has no raw logs of the earlier rounds, of which the tables are made.
    for folder in (tree.path / DATA / "backlog").glob("*/"):
        shutil.rmtree(folder)
    said = tree.checked(dataset="tiny").failed().text
    assert "deathmatch unpack tiny" in said
    tree.deathmatch("unpack", "tiny").succeeded()
    # One kind of machine in each round: the kernel of another round may differ.
    for file in tree.path.glob(f"{DATA}/backlog/*/*/*/trial.json"):
        record = json.loads(file.read_text())
        record["machine"]["kernel"] = "2.6"
        file.write_text(json.dumps(record))
    said = tree.snakemake(dataset="tiny").succeeded().text
    assert "missing: nothing now" in said and "makes the paper" in said
    assert rounds(tree) == [1, 2, 3]
    # A sitting that is kept already is not judged again, as by a run in a clone without build/.
    tree.deathmatch("sitting", "tiny", "second").succeeded()
    assert kept(tree)[2:] == [("second", 1, False)]

    # A sitting that is refused by hand, because a fault was found later, is due again.
    tree.deathmatch("sitting", "tiny", "second", "--refuse", "a fault").failed()
    assert kept(tree)[3:] == [("second", 2, True)] and records(tree) == 2
    assert rounds(tree) == [1, 2]
