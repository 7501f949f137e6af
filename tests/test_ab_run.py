"""Two variants compared: what the command refuses, and a small real comparison."""

import json

import pytest

from deathmatch.analysis import ab_result as shown
from deathmatch.errors import UserError
from deathmatch.plan import ab_design


def test_a_side_is_a_server_with_settings():
    side = ab_design.side("yucan:backlog=5,schedulers=all")
    assert str(side) == "yucan:backlog=5,schedulers=all"
    assert ab_design.levels(side, "backlog") == {"backlog": 5, "schedulers": "all"}
    assert ab_design.variant(side, "backlog").factors["somaxconn"] == 4096


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "names no side"),
        ("yucan:", None),
        ("yucan:backlog", "names no side"),
        ("yucan:=5", "names no side"),
        ("yucann", "there is no server 'yucann'"),
    ],
)
def test_what_names_no_side_is_refused(text, says):
    if says is None:
        assert ab_design.side(text).named == ()
        return
    with pytest.raises(UserError, match=says):
        ab_design.side(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [("yucan:backlogs=5", "did you mean 'backlog'"), ("yucan:backlog=6", "its levels: 1, ")],
)
def test_a_factor_or_level_that_is_not_there_is_named(text, says):
    with pytest.raises(UserError) as error:
        ab_design.levels(ab_design.side(text), "backlog")
    assert says in str(error.value)


def test_both_sides_need_an_experiment_under_load():
    sides = [ab_design.side(name) for name in ("ws-null", "yucan")]
    with pytest.raises(UserError, match="no experiment under load"):
        ab_design.experiment(sides, None)
    stores = [ab_design.side(name) for name in ("otp-store", "python-store")]
    with pytest.raises(UserError, match="no experiment under load"):
        ab_design.experiment(stores, None)
    both = [ab_design.side(name) for name in ("null", "yucan")]
    assert ab_design.experiment(both, "single-thread") == "single-thread"
    with pytest.raises(UserError, match="not both serve 'static'"):
        ab_design.experiment(both, "static")


def test_too_little_time_is_refused_before_anything_is_built(tree):
    refused = tree.deathmatch("compare", "null", "null", "--minutes", "0.1").failed()
    assert "too few for 3 blocks" in refused.text and "--minutes" in refused.text
    assert not list((tree.path / "config/datasets").glob("compare-*"))


@pytest.mark.parametrize(
    ("statistic", "low", "high", "worse"),
    [
        ("cpu_us_per_reply", 1.06, 1.10, True),
        ("cpu_us_per_reply", 1.04, 1.10, False),
        ("cpu_us_per_reply", 0.80, 0.90, False),
        ("peak_reply_rate_rps", 0.90, 0.94, True),
        ("peak_reply_rate_rps", 0.90, 0.96, False),
        ("peak_reply_rate_rps", 1.06, 1.10, False),
        ("cpu_us_per_reply", None, None, False),
    ],
)
def test_worse_is_what_the_whole_interval_says(statistic, low, high, worse):
    assert shown.worse_by({"statistic": statistic, "low": low, "high": high}, 0.05) == worse


def test_a_condition_that_is_none_is_refused(tree):
    said = tree.deathmatch("compare", "null", "null", "--fail-if", "slower").failed().text
    assert "'slower' is no condition" in said and 'write "slower-than 5 %"' in said


def test_a_variant_against_itself_is_compared_and_its_trials_are_a_dataset(tree):
    done = tree.deathmatch(
        "compare", "null", "null", "--rates", "200", "--duration", "1", "--minutes", "1.9",
        "--seed", "3", "--experiment", "backlog", "--name", "twice",
        "--fail-if", "slower-than", "500", "%",
    ).succeeded()  # fmt: skip
    record = json.loads((tree.path / "data/twice/comparison.json").read_text())
    assert record["verdict"] in done.text and "A against A" not in done.text
    comment = (tree.path / "data/twice/comparison.md").read_text()
    assert comment.startswith(f"**{record['verdict']}**\n") and "| CPU per reply at 200" in comment
    blocks = done.text.count("trial 1 of 4")
    first = record["rows"][0]
    assert first["statistic"] == "cpu_us_per_reply" and first["offered_rate_rps"] == 200
    # A busy client may have been the limit: then the block does not count, and that is said.
    assert first["blocks"] <= blocks and "points do not count" in done.text
    assert set(record["rows"][0]) == set(shown.ROWS)
    assert (tree.path / "figures/twice/comparison.svg").read_text().startswith("<svg")
    trials = tree.trials("twice")
    assert sorted(n for _, n in trials) == list(range(1, 4 * blocks + 1))
    assert f"trials = {4 * blocks}" in (tree.path / "config/datasets/twice.toml").read_text()
    tree.deathmatch("check", "twice")
    again = tree.deathmatch("compare", "null", "null", "--name", "twice").failed()
    assert "called 'twice'" in again.text and "Traceback" not in again.text
