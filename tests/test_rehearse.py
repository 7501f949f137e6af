"""`deathmatch rehearse`: each variant of a dataset once, for a second."""

import csv
import tomllib

from conftest import Tree

from deathmatch.plan import files
from deathmatch.run import rehearse


def test_a_rehearsal_has_every_variant_but_those_that_only_last_longer():
    dataset = files.dataset("reference")
    text = rehearse.text_of(dataset)
    planned = tomllib.loads(text)
    assert planned["trials"] == 1 and "search" not in text
    for name, plan in dataset.experiments.items():
        own = planned["experiments"][name]
        assert own.get("duration_s", 1) == 1
        for grid, same in zip(plan.grids, own["grids"], strict=True):
            levels = {k: v if v == "all" else list(v) for k, v in grid.levels.items() if k != "run"}
            assert {k: v for k, v in same.items() if k not in ("servers", "omit")} == levels
            assert tuple(same.get("servers", ())) == (grid.servers or ())
    lasting = [grid for grid in dataset.experiments["c10k"].grids if "run" in grid.levels]
    assert lasting and "five-minutes" not in text


def test_the_outcome_of_each_variant_is_a_row(tree: Tree):
    tree.server("mine", "ok")
    tree.server("wrong", "wrong")
    tree.dataset("tiny", ["mine", "wrong"], [500], duration_s=60, trials=9)
    said = tree.deathmatch("rehearse", "tiny").failed().text
    assert "backlog wrong somaxconn=4096: " in said
    assert "data/planned/tiny-rehearsal.csv: 1 of 2 variants ran well" in said
    with (tree.path / "data/planned/tiny-rehearsal.csv").open(encoding="utf-8") as file:
        rows = {row["server"]: row for row in csv.DictReader(file)}
    assert rows["mine"]["outcome"] == "measured" and not rows["mine"]["reason"]
    assert rows["wrong"]["outcome"] == "answers wrongly" and rows["wrong"]["reason"]
    assert not (tree.path / "config/datasets/tiny-rehearsal.toml").exists()
    again = tree.deathmatch("rehearse", "tiny", "--servers", "mine").failed().text
    assert "[rehearse]" not in again and "1 of 2 variants" in again
