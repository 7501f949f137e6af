"""Why a figure or table is left out, in words that are true of each case."""

import polars as pl
import pytest

from deathmatch.analysis import outcomes, views

LIMITED, BROKEN, VALID = (True, "whole"), (False, "truncated"), (False, "whole")


@pytest.mark.parametrize(
    ("points", "said"),
    [
        ([], "no point of *backlog* was measured"),
        ([VALID] * 3, "none of the 3 points of *backlog* is of a variant that it shows"),
        ([LIMITED] * 4, "4 of 4 points of *backlog* were limited by the client"),
        ([LIMITED, VALID],
         "1 of 2 points of *backlog* were limited by the client, and the others are of "
         "variants that it does not show"),
        ([LIMITED, BROKEN],
         "1 of 2 points of *backlog* were limited by the client and at 1 of 2 points of *backlog* "
         "the report of the load generator breaks off"),
    ],
)  # fmt: skip
def test_the_reason_counts_the_points(points, said):
    kinds = {"client_limited": pl.Boolean, "report": pl.String}
    frame = pl.DataFrame(points, schema=kinds, orient="row")
    made = views.Experiment("tiny", "backlog")
    made.__dict__["points"] = frame
    assert outcomes._of_experiment(made) == said


def test_the_reason_is_that_of_each_experiment_drawn():
    source = [f"data/reference/{name}/points.parquet" for name in ("storage", "backlog")]
    first, second = outcomes.reason([*source, source[0], "data/published/x.csv"]).split("; ")
    assert "points of *storage* is of a variant that it shows" in first
    assert "points of *backlog*" in second
    assert outcomes.reason(["data/published/walkin2009.csv"]) == ""
    assert outcomes.reason(["data/none/backlog/times.parquet"]) == (
        "no point of *backlog* was measured"
    )
