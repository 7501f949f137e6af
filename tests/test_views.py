"""Views of notebooks: overloads, points that the client limits, and numbers in prose."""

import polars as pl

from deathmatch.analysis import c10k, phrases, reply_rates, views
from deathmatch.analysis.reply_rates import RATE, REPLY
from deathmatch.load.generator import FIRST_WRONG
from deathmatch.paper import theme
from deathmatch.plan import files
from deathmatch.quantities.quantity import WRONG


def points(rows: list[tuple[str, int, int, float, bool]]) -> pl.DataFrame:
    columns = ["label", "n", RATE, REPLY, "client_limited"]
    frame = pl.DataFrame(rows, schema=columns, orient="row")
    return reply_rates.with_top(frame.with_columns(server="label", variant="label"))


CAPACITIES = pl.DataFrame({
    "label": ["fast", "slow"], "median": [4000.0, 2500.0], "at_least": [True, False],
})  # fmt: skip


def test_the_offered_rates_are_those_up_to_the_highest_and_the_lower_ends():
    made = views.Experiment("tiny", "backlog")
    made.__dict__["points"] = points([
        ("fast", 1, 4000, 4000.0, False), ("fast", 1, 9000, 6000.0, False),
        ("small", 1, 1000, 800.0, False), ("cut", 1, 1000, 800.0, False),
        ("cut", 1, 4000, 900.0, True), ("more", 1, 4000, 3990.0, False),
    ])  # fmt: skip
    told = made.rates.replace("\u202f", " ")
    assert told == "4 000, 9 000 (to servers that answer fewer, up to 1 000 or 4 000)"


def test_the_rate_at_which_a_server_died_is_reported():
    made = views.Experiment("tiny", "backlog")
    key = {"server": "tornado-1", "variant": "v"}
    made.__dict__["trials"] = pl.DataFrame([
        key | {"n": n, "label": label, "version": "1.2.1", "outcome": outcome, "reason": ""}
        for n, label, outcome in (
            (1, "A", "measured"), (2, "A", "measured, with failures"), (3, "B", "measured")
        )
    ])  # fmt: skip
    made.__dict__["points"] = pl.DataFrame([
        key | {"n": n, RATE: rate, "server_state": state, WRONG: wrong, FIRST_WRONG: first}
        for n, rate, state, wrong, first in (
            (1, 7000, "ran", 0, None), (2, 9000, "hung", None, None),
            (2, 7000, "died: exit status 1", 0, None), (3, 9000, "ran", 5, "status 503"),
        )
    ])  # fmt: skip
    died, wrong = made.endings().head(2).rows(named=True)
    assert died["reason"] == "died: exit status 1 at 7000 req/s"
    assert (died["trials"], died["clean"]) == (2, 1)
    # An older record counts wrong answers as good ones.
    assert wrong["reason"] == "5 wrong answers at 9000 req/s, the first: status 503"
    assert (wrong["trials"], wrong["clean"]) == (1, 0)


def test_a_curve_that_ends_early_has_no_line_to_its_label():
    """The line would be level, and look like a plateau that was not measured."""
    theme.register()
    frame = pl.DataFrame({"x": [0, 900, 0, 8000], "y": [1, 5, 1, 2], "s": ["a", "a", "b", "b"]})
    drawn = theme.lines(frame, "x", "y", "s").to_dict()
    assert [layer["mark"]["type"] for layer in drawn["layer"]].count("rule") == 0


def test_an_arrowhead_marks_a_value_that_may_be_higher():
    theme.register()
    drawn = theme.dots(CAPACITIES, "median", "label", more="at_least").to_dict()
    heads = [layer for layer in drawn["layer"] if layer["mark"].get("shape") == "triangle-right"]
    assert [head["transform"][0]["filter"] for head in heads] == ["datum['at_least']"]
    none = theme.dots(CAPACITIES.filter(label="slow"), "median", "label", more="at_least").to_dict()
    assert len(none["layer"]) == len(drawn["layer"]) - 1


def test_servers_without_a_limit_have_no_order():
    quick = pl.DataFrame({"label": ["quick"], "median": [4500.0], "at_least": [True]})
    found = pl.concat([CAPACITIES, quick])
    assert reply_rates.ranking(found, "label") == "fast and quick, without a limit here, > slow"
    assert reply_rates.ranking(found.filter(pl.col("label") != "quick"), "label") == "fast > slow"


def test_numbers_in_prose():
    assert phrases.number(-0.04, 1) == "0.0" and phrases.number(-1234.56, 1) == "-1\u202f234.6"
    words = {0.98: "about the same", 0.346: "about a third", 1.12: "about a tenth more",
             2.4: "about 2.5 times", 1234.0: "about 1\u202f000 times"}  # fmt: skip
    assert {ratio: phrases.in_words(ratio) for ratio in words} == words


# Small multiples and other parts of charts ---------------------------------------------------


def test_small_multiples_share_one_legend_and_keep_a_mechanisms_colour():
    theme.register()
    rows = [("C", "poll", 0), ("C", "epoll", 0), ("nginx", "epoll", 0), ("nginx", "epoll", 900)]
    frame = pl.DataFrame(rows, schema=["title", "way", "idle"], orient="row").with_columns(
        low=pl.lit(1.0), median=pl.lit(2.0), high=pl.lit(3.0)
    )
    order = ["select", "poll", "epoll"]
    drawn = theme.multiples(
        frame, "idle", "median", "way", "title", low="low", high="high", order=order,
        x_title="idle", y_title="CPU",
    ).to_dict()  # fmt: skip
    assert drawn["columns"] == 3 and len(drawn["concat"]) == 2
    scales = [panel["layer"][0]["encoding"]["color"]["scale"] for panel in drawn["concat"]]
    # select was not measured; its colour stays unused.
    assert scales == [{"domain": ["poll", "epoll"], "range": theme.PALETTE[1:3]}] * 2
    assert [panel["layer"][0]["title"] for panel in drawn["concat"]] == ["C", "nginx"]


def test_rows_on_a_logarithmic_axis_have_ticks_at_powers_of_ten():
    theme.register()
    frame = pl.DataFrame({"v": [0.5, 90_000.0], "s": ["a", "b"]})

    def ticks(width: int) -> list[float]:
        drawn = theme.dots(frame, "v", "s", log_x=True, width=width).to_dict()
        return drawn["layer"][0]["encoding"]["x"]["axis"]["values"]

    assert ticks(400) == [0.1, 1, 10, 100, 1000, 10_000]
    assert ticks(130) == [0.1, 10, 1000], "they would run into each other"


def test_our_latency_is_compared_with_that_of_the_post():
    points = pl.DataFrame({
        "label": ["Tornado", "Tornado", "axum"], "server": ["tornado-ws", "tornado-ws", "axum"],
        "schedulers": ["one", "one", "one"], "n": [1, 2, 1],
        "message_latency_p95_us": [1000, 3000, 9],
    })  # fmt: skip
    theirs = pl.DataFrame({
        "system": ["python-tornado-1", "python-tornado-1"], "environment": ["local", "EC2"],
        "message_latency_p95_us": [50_000.0, 7.0],
    })  # fmt: skip
    found = c10k.latency_with_published(points, theirs).to_dicts()
    assert [(row["label"], row["trials"], row["p95_ms"], row["published_ms"]) for row in found] == [
        ("Tornado", 2, 2.0, 50.0)
    ]


def test_a_trial_without_configuration_counts_as_the_first_one():
    first, other = files.server("haskell-warp").configurations_in("dynamic")
    rows = [("haskell-warp", level, 128, "one") for level in (None, first, other)]
    columns = ["server", "configuration", "backlog", "schedulers"]
    frame = pl.DataFrame(rows, schema=columns, orient="row").with_columns(
        readiness=pl.lit(None, dtype=pl.String),
        max_connections=pl.lit(None, dtype=pl.Int64),
        values=pl.lit(None, dtype=pl.String),
    )
    found = views.default_variants(frame, "dynamic")
    assert found["configuration"].to_list() == [None, first]


def test_a_point_with_a_truncated_report_is_not_valid():
    made = views.Experiment("tiny", "backlog")
    kinds = {"client_limited": pl.Boolean, "report": pl.String, reply_rates.RATE: pl.Int64}
    rows = [(False, "whole", 1), (False, "truncated", 2), (True, "whole", 3)]
    made.__dict__["points"] = pl.DataFrame(rows, schema=kinds, orient="row")
    assert made.valid_points[reply_rates.RATE].to_list() == [1]
    made.__dict__["points"] = made.points.clear()
    assert made.top is None
