"""What notebooks look at: plateaus, what the client hides of them, and numbers in prose."""

import polars as pl

from deathmatch import theme, views, words
from deathmatch.views import RATE, REPLY


def points(rows: list[tuple[str, int, int, float, bool]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["label", "n", RATE, REPLY, "client_limited"], orient="row")


SWEEP = points([
    ("fast", 1, 1000, 1000.0, False), ("fast", 1, 4000, 3990.0, False),
    ("slow", 1, 1000, 1000.0, False), ("slow", 1, 4000, 2500.0, False),
    ("hidden", 1, 1000, 1000.0, False), ("hidden", 1, 4000, 3999.0, True),
])  # fmt: skip


def test_a_plateau_at_all_that_was_offered_may_be_higher():
    found = views.plateaus(SWEEP.filter(~pl.col("client_limited")), ["label"])
    rows = {row["label"]: (row["median"], row["all_answered"]) for row in found.to_dicts()}
    assert rows == {"fast": (3990.0, True), "slow": (2500.0, False)}


def test_what_the_client_hides_is_named():
    made = views.Experiment("tiny", "backlog")
    made.__dict__["points"] = SWEEP
    assert made.no_plateau.endswith("at the highest rate: hidden.")
    made.__dict__["points"] = SWEEP.filter(label="slow")
    assert made.no_plateau.startswith("Every variant")


def test_an_arrowhead_stands_beside_what_may_be_higher():
    theme.register()
    frame = views.plateaus(SWEEP, ["label"]).select("label", "median", "all_answered")
    drawn = theme.dots(frame, "median", "label", more="all_answered").to_dict()
    heads = [layer for layer in drawn["layer"] if layer["mark"].get("shape") == "triangle-right"]
    assert [head["transform"][0]["filter"] for head in heads] == ["datum['all_answered']"]
    none = theme.dots(frame.filter(label="slow"), "median", "label", more="all_answered").to_dict()
    assert len(none["layer"]) == len(drawn["layer"]) - 1


def test_those_without_a_limit_have_no_order():
    more = pl.concat([SWEEP, points([("quick", 1, 4000, 4000.0, False)])])
    found = views.plateaus(more.filter(~pl.col("client_limited")), ["label"])
    assert views.ranking(found, "label") == "fast and quick, without a limit here, > slow"
    assert views.ranking(found.filter(pl.col("label") != "quick"), "label") == "fast > slow"


def test_numbers_in_prose():
    assert words.number(-0.04, 1) == "0.0" and words.number(-1234.56, 1) == "-1\u202f234.6"
    found = {"trials": 3, "median": 1.5, "low": 1.25, "high": 2.0}
    assert words.ratio(found) == "1.50 times (interval 1.25 to 2.00, n = 3)"
    listed = [words.listed(["a", "b", "c"][:length]) for length in range(4)]
    assert listed == ["", "a", "a and b", "a, b and c"]
