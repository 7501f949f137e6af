"""Two datasets compared, as the parameter `compare` asks for."""

import re
import shutil

import polars as pl
import pytest
from conftest import ROOT, Tree

from deathmatch.analysis import agreement, judging, machine_cost
from deathmatch.analysis.interval import Interval
from deathmatch.analysis.ledger import Entry, Side, Verdict
from deathmatch.analysis.reply_rates import RATE, REPLY, TOP
from deathmatch.errors import UserError
from deathmatch.load import registry
from deathmatch.paper import two_datasets
from deathmatch.plan import files
from deathmatch.plan.dataset import TABLES

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.md"))
CALL = r"^compare_experiments\(dataset, compare, (.*)\)$"


def test_every_experiment_is_compared_once():
    """By the chapter that it is the question of; those on all experiments leave it to them."""
    calls = {path.stem: re.findall(CALL, path.read_text(), re.M) for path in NOTEBOOKS}
    shown = [name for found in calls.values() for call in found
             for name in re.findall(r'"([\w-]+)"', call)]  # fmt: skip
    assert sorted(shown) == files.names("experiment")
    assert "compare_claims(dataset, compare)" in (ROOT / "notebooks/14-machines.md").read_text()


def test_every_experiment_has_a_measure():
    headlines = {registry.generator(name).headline for name in registry.names()}
    assert headlines | {None} == set(two_datasets.MEASURES)


def points(**columns: list) -> pl.DataFrame:
    rows = pl.DataFrame(columns)
    fixed = {
        "dataset": "mine",
        "label": "a",
        "n": 1,
        RATE: 100,
        REPLY: 90.0,
        "client_limited": False,
        "report": "whole",
    }
    return rows.with_columns(
        **{name: pl.lit(value) for name, value in fixed.items() if name not in columns}
    )


def test_only_rates_that_both_offered_count():
    frame = points(
        **{"dataset": ["mine"] * 3 + ["other"] * 2, RATE: [100, 200, 400, 100, 200],
           REPLY: [100.0, 190.0, 390.0, 99.0, 150.0]}
    )  # fmt: skip
    assert two_datasets._reply_rates(frame).sort("dataset")["value"].to_list() == [190, 150]


def test_a_trial_that_the_client_cut_short_shows_nothing():
    frame = points(
        **{"dataset": ["mine", "mine", "other", "other"], RATE: [100, 200] * 2,
           REPLY: [100.0, 110.0, 99.0, 150.0], "client_limited": [False, True, False, False]}
    )  # fmt: skip
    assert two_datasets._reply_rates(frame).select("dataset", "value").rows() == [("other", 150)]


def test_what_answered_all_that_both_offered_is_told_apart():
    frame = points(
        **{"dataset": ["mine", "other"] * 3, "label": list("aabbcc"), RATE: [100] * 6,
           REPLY: [99.0, 98.0, 99.0, 80.0, 60.0, 50.0]}
    )  # fmt: skip
    assert two_datasets._all_answered(two_datasets._reply_rates(frame)) == ["a"]
    assert (
        two_datasets._all_answered(
            frame.filter(dataset="mine").with_columns(value=99, **{TOP: 100})
        )
        == []
    )
    assert two_datasets._all_answered(frame) == [], "of what has no rate"


def test_bytes_per_message_are_what_the_process_grew_by():
    frame = points(messages=[0, 1000], rss_bytes=[10_000, 170_000])
    assert two_datasets._bytes_per_message(frame)["value"].to_list() == [160]


def test_what_cannot_be_compared(monkeypatch):
    with pytest.raises(UserError, match="'never' has no tables to compare with"):
        two_datasets.compare_experiments("quick", "never", "backlog")
    with pytest.raises(UserError, match="is the dataset itself"):
        two_datasets.compare_claims("quick", "quick")
    two_datasets.compare_experiments("quick", "", "backlog")


def entry(name: str, then: Verdict, now: Verdict, same: bool) -> Entry:
    texts = dict.fromkeys(("source", "place", "role", "experiment", "rule"), "")
    return Entry(
        name, says=f"It is {name}.", statistics=(), published=None, same=same, differences=(),
        then=then, now=now, **texts,
    )  # fmt: skip


def ledger(**verdicts: tuple[str, str]) -> list[Entry]:
    """A ledger of claims by their verdicts then and now; `same` where its name says so."""
    return [
        entry(name, Verdict(then), Verdict(now), name == "same")
        for name, (then, now) in verdicts.items()
    ]


def test_verdicts_of_two_datasets_are_counted_by_how_they_stand_to_each_other():
    yes, no, maybe, never = judging.REPLICATED, judging.NOT, judging.OPEN, judging.NOT_RUN
    ours = ledger(same=(yes, yes), fast=(no, yes), idle=(maybe, never), gone=(never, never))
    theirs = ledger(same=(yes, yes), fast=(yes, maybe), idle=(no, never), gone=(never, never))
    found = agreement.verdicts(ours, theirs)
    assert found.select("claim", "when", "kind").rows() == [
        ("fast", "then", "opposed"), ("fast", "now", "one decides"),
        ("idle", "then", "one decides"), ("same", "then and now", "alike"),
    ]  # fmt: skip


def measured(
    *claims: tuple[str, str, float | None, float, float], sides: str = "ab"
) -> list[Entry]:
    """A ledger of claims by verdict, effect and interval, of which then and now are one."""
    made = []
    for name, word, effect, low, high in claims:
        compared = tuple(Side(f"{name} {side}", Interval(), "") for side in sides)
        verdict = Verdict(word, Interval(3, effect, low, high), sides=compared)
        made.append(entry(name, verdict, verdict, same=True))
    return made


def test_ratios_of_two_datasets_are_apart_where_their_intervals_are():
    inf = float("inf")
    ours = measured(
        ("near", judging.REPLICATED, 2.0, 1.5, 2.5), ("far", judging.REPLICATED, 4.0, 3.0, 5.0),
        ("open", judging.OPEN, 2.0, 1.0, inf), ("gone", judging.NOT_RUN, None, 1, 1),
    )  # fmt: skip
    theirs = [
        ("near", judging.REPLICATED, 2.2, 1.8, 2.6), ("far", judging.NOT, 0.5, 0.4, 0.6),
        ("open", judging.OPEN, 2.0, 1.0, 3.0), ("gone", judging.OPEN, 2.0, 1.0, 3.0),
    ]  # fmt: skip
    found = agreement.effects(ours, measured(*theirs))
    assert found.select("claim", "kind", "factor", "apart").rows() == [
        ("far", "opposed", 8.0, True), ("near", "alike", pytest.approx(1.1), False),
    ]  # fmt: skip
    # Two that differ in a side are two ratios.
    assert agreement.effects(ours, measured(*theirs, sides="xy")).is_empty()


def test_what_a_reply_costs_is_compared_at_one_rate_and_one_version():
    found = machine_cost.costs("reference", "first")
    assert found.schema == pl.Schema(machine_cost.COSTS) and len(found) > 20
    assert found["ratio"].min() > 0.1 and found["ratio"].max() < 10
    same = machine_cost.costs("reference", "reference")
    assert len(same) > len(found) and same["ratio"].unique().to_list() == [1.0]
    assert (same[RATE] > 0).all()


def test_a_chapter_is_made_again_when_the_other_dataset_changes(tree: Tree):
    """Both datasets are in its table; the other is only read, even where it has no file."""
    tree.write(
        "config/datasets/tiny.toml",
        'title = "a test"\ntrials = 1\nseed = 1\n[experiments.storage]\nmessages = [1000]\n'
        '[[experiments.storage.grids]]\nservers = ["python-store"]\n',
    )
    chapter = "paper/tiny/notebooks/06-storage.ipynb"
    tree.snakemake("data/tiny/storage/points.parquet", dataset="tiny").succeeded()
    shutil.copytree(tree.path / "data" / "tiny", tree.path / "data" / "other")
    # The dataset's own file may name the other one, or the command line.
    tree.replace("config/datasets/tiny.toml", "seed = 1\n", 'seed = 1\ncompare = "other"\n')
    tree.snakemake(chapter, dataset="tiny").succeeded()
    text = (tree.path / chapter).read_text()
    assert "Compared with the dataset other" in text and "tbl-storage-compare" in text
    for table in TABLES:
        path = tree.path / "data" / "other" / "storage" / f"{table}.parquet"
        frame = pl.read_parquet(path)
        frame.with_columns(pl.lit(2, pl.Int64).alias("n")).write_parquet(path)
    done = tree.snakemake("-n", chapter, dataset="tiny", compare="other").succeeded()
    assert "notebook" in done.text and "rule tidy" not in done.text
