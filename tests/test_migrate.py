"""Datasets of earlier versions: tables with today's columns, raw logs read as they were written."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest
from conftest import ROOT, Tree, copy_tree

from deathmatch.data import archive, laws, migrate, records
from deathmatch.load import wsload_summary

# The oldest tables that git holds, and the raw logs of one of their experiments.
FIRST = Path("data/first")
FIRST_LOGS = Path("tests/data/first")
REFERENCE = Path("data/reference")


@pytest.mark.parametrize(
    ("dataset", "experiment", "logs"),
    [(FIRST, "storage", FIRST_LOGS), (REFERENCE, "overhead", REFERENCE)],
)
def test_the_committed_tables_are_those_of_the_raw_logs(
    tmp_path, network, dataset, experiment, logs
):
    """The records of `first` hold the factors' first names, and give today's tables."""
    tree = Tree(copy_tree(tmp_path / "tree"), network)
    folder = tree.path / dataset / experiment
    folder.mkdir(parents=True)
    archive.unpack(ROOT / logs / experiment / "raw.tar.xz", folder)
    assert not list(folder.glob("*/*setup=*"))
    tree.deathmatch("tidy", folder.relative_to(tree.path)).succeeded()
    committed = sorted((ROOT / dataset / experiment).glob("*.parquet"))
    assert {file.stem for file in committed} >= {"trials", "points"}
    for file in committed:
        assert (folder / file.name).read_bytes() == file.read_bytes(), file.name


def test_points_of_before_the_laws_are_held_against_them(tmp_path):
    old = tmp_path / "c10k"
    shutil.copytree(ROOT / REFERENCE / "c10k", old, ignore=shutil.ignore_patterns("*.xz"))
    file = old / "points.parquet"
    pl.read_parquet(file).drop(*laws.MARKS).write_parquet(file)
    assert migrate.frames(tmp_path) == [file]
    assert file.read_bytes() == (ROOT / REFERENCE / "c10k" / file.name).read_bytes()
    assert migrate.frames(tmp_path) == []


def test_a_record_of_an_earlier_version_reads_as_todays():
    file = next((ROOT / "tests/data/yucan").rglob("trial.json"))
    written = json.loads(file.read_text())
    assert "server" in written["points"][0]
    read = records.read(file)
    assert [point["server_state"] for point in read["points"]] == [
        point["server"] for point in written["points"]
    ]
    assert "client_state" in read["points"][0] and "client" not in read["points"][0]
    assert records.upgrade(read) == read
    # Before trials recorded their steps.
    assert "steps_us" not in read
    old = {"spec": {"factors": {"setup": "ets"}, "client": "memory", "load": {}}, "points": []}
    kept = json.dumps(old)
    assert records.upgrade(old)["spec"] == {
        "factors": {"configuration": "ets"}, "load": {}, "measures": "storage",
    }  # fmt: skip
    assert json.dumps(old) == kept


def test_a_dataset_that_is_not_there_is_named(tmp_path, network):
    tree = Tree(copy_tree(tmp_path / "tree"), network)
    said = tree.deathmatch("migrate", "mine").failed().text
    assert "data/mine: there is no such folder\n  datasets that are there: none\n" in said
    tree.write("data/yours/backlog/null/backlog=5/1/trial.json", "{}")
    tree.write("data/theirs/backlog/points.parquet", "")
    said = tree.deathmatch("migrate", "mine").failed().text
    assert "datasets that are there: theirs, yours\n" in said


def test_factors_that_came_later_have_the_level_that_was_in_force(tmp_path):
    """What nobody recorded is null."""
    old = tmp_path / "c10k"
    shutil.copytree(ROOT / FIRST / "c10k", old)
    today = {file.stem: pl.read_parquet(file) for file in old.glob("*.parquet")}
    later = ["connections_starved", *wsload_summary.OPENING, *wsload_summary.CHURN]
    for name, table in today.items():
        table.drop("opening", "run", *later, strict=False).write_parquet(old / f"{name}.parquet")
    assert len(migrate.frames(tmp_path)) == len(today)
    for name, table in today.items():
        made = pl.read_parquet(old / f"{name}.parquet")
        assert made.equals(table) and made.columns == table.columns
        assert made["opening"].unique().to_list() == [128]
        assert made["run"].unique().to_list() == ["planned"]
    assert today["points"].select(later).null_count().row(0) == (len(today["points"]),) * len(later)
    assert migrate.frames(tmp_path) == []


def test_a_record_has_the_level_of_a_factor_that_came_later():
    spec = {"factors": {"schedulers": "one"}, "client": "wsload", "load": {"opening": 128}}
    read = records.upgrade({"experiment": "c10k", "spec": spec, "points": []})
    assert read["spec"]["factors"] == {"schedulers": "one", "opening": 128, "run": "planned"}
    assert records.upgrade(read) == read
    assert spec["factors"] == {"schedulers": "one"}
