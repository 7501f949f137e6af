"""Releases over the years: which follow each other, what changed between them, and the posts'."""

import json
import re

import polars as pl
import pytest
from conftest import Tree

from deathmatch.analysis import history, searched
from deathmatch.data import tables
from deathmatch.paper import theme
from deathmatch.paper.charts import history as charts
from deathmatch.plan import files
from deathmatch.plan.dataset import TABLES
from deathmatch.quantities.definitions import CPU_PER_REPLY


def points(**cost_us: list[float]) -> pl.DataFrame:
    """A point of each round of servers, by name with underscores, at a planted CPU per reply."""
    return pl.DataFrame([
        {
            "server": server.replace("_", "-").replace("-dot-", "."), "n": n, "replies": 1000,
            "offered_rate_rps": 500, "top_rate_rps": 500, "server_cpu_ns": round(cost * 1e6),
        }
        for server, costs in cost_us.items()
        for n, cost in enumerate(costs, start=1)
    ])  # fmt: skip


TORNADO = points(
    tornado_0_dot_2=[100, 110, 90], tornado_2_dot_4=[120, 132, 108], tornado=[360, 363, 270]
)


def test_every_release_has_a_year_and_a_system_and_differs_from_its_neighbours():
    releases = history.releases()
    served = {server.name for server in files.servers() if "history" in server.experiments}
    # The null server is measured with them, and is no release.
    assert set(releases["server"]) == served - set(files.instruments())
    library = pl.col("release").str.split(",").list.first().str.split(" on ").list.first()
    assert not releases.select("system", library, "runtime").is_duplicated().any()


def test_of_one_year_the_older_release_and_the_older_runtime_come_first():
    releases = history.releases()
    netty = releases.filter(system="Netty", year=2021)
    assert netty["runtime"].to_list() == ["OpenJDK 8", "OpenJDK 25"]
    tornado = releases.filter(system="Tornado", year=2018)
    assert tornado["server"].to_list() == ["tornado-4.5", "tornado-5.1-python2", "tornado-5.1"]


def test_one_release_on_two_runtimes_is_the_runtimes_share():
    of_python_2 = points(tornado_4_dot_5=[9, 9, 9], tornado_5_dot_1_python2=[10, 10, 10])
    frame = pl.concat([of_python_2, points(tornado_5_dot_1=[13, 13, 13])])
    [row] = history.changes(history.by_trial(frame)).filter("same_release").to_dicts()
    assert round(row["median"], 2) == 1.3 and row["runtime"] == "Python 2.7, then Python 3.11"
    # The next release is compared with that on its own runtime.
    on_pypy = points(tornado_2_dot_4_pypy=[40, 44, 36], tornado_3_dot_2=[130, 143, 117])
    changed = history.changes(history.by_trial(pl.concat([TORNADO, on_pypy])))
    before = dict(changed.select("after", "before").rows())
    assert before["Tornado 2.4.1, PyPy 7.3.3"] == "Tornado 2.4.1, Python 2.7.18"
    assert before["Tornado 3.2.2, Python 2.7.18"] == "Tornado 2.4.1, Python 2.7.18"


def test_neighbours_are_compared_within_rounds():
    trials = history.by_trial(TORNADO)
    changed = history.changes(trials)
    assert changed["median"].round(2).to_list() == [1.2, 2.74]
    assert changed["low"].round(2).to_list() == [1.2, 2.19]
    assert changed["runtime"].to_list() == ["Python 2.7", "Python 2.7, then Python 3.11"]
    # A jump is beyond a third, either way.
    assert history.jumps(changed)["after"].to_list() == ["Tornado 6.6.1"]
    cheaper = history.by_trial(points(node_0_dot_10=[100, 100, 100], node=[70, 70, 70]))
    assert history.jumps(history.changes(cheaper))["median"].to_list() == [0.7]
    # A system with one release has not changed since the first.
    of_two = history.by_trial(pl.concat([TORNADO, points(node=[1, 1, 1])]))
    [row] = history.since_first(of_two).to_dicts()
    assert (row["before"], row["after"]) == ("Tornado 0.2, Python 2.7.18", "Tornado 6.6.1")
    assert round(row["median"], 2) == 3.29


def test_a_trial_without_one_of_the_rates_does_not_count():
    faster = TORNADO.with_columns(offered_rate_rps=pl.lit(2000, pl.Int64))
    both = pl.concat([TORNADO, faster.filter(pl.col("n") > 1)])
    assert history.by_trial(both)["n"].unique().sort().to_list() == [2, 3]


def test_a_round_that_one_release_lacks_does_not_count_for_its_system():
    node = points(node_0_dot_10=[10, 20, 30], node=[10, 20, 30])
    frame = pl.concat([TORNADO.filter((pl.col("server") != "tornado") | (pl.col("n") < 3)), node])
    trials = dict(history.over_years(frame, CPU_PER_REPLY).select("server", "trials").rows())
    assert trials["tornado-0.2"] == trials["tornado"] == 2 and trials["node"] == 3


def test_a_posts_rate_is_that_of_one_process():
    """Not the 8213 of four frontends, nor Yaws's on all cores."""
    rates = history.published_rates()
    known = {
        (system, year): rate
        for system, year, rate in rates.select("system", "year", "reply_rate_rps").rows()
    }
    assert known["Tornado", 2009] == 4000 and known["Tornado", 2011] == 1500
    assert known["OTP", 2009] == 3500 and known["eventlet", 2011] == 4859
    assert ("Yaws", 2009) not in known


def test_the_chart_has_a_panel_for_each_system_and_a_colour_for_each_runtime():
    theme.register()
    known = pl.concat([TORNADO, points(node_0_dot_10=[10, 11, 12])])
    frame = history.over_years(known, CPU_PER_REPLY)
    chart = charts.over_years(frame, "CPU").to_dict()
    assert [panel["title"] for panel in chart["concat"]] == ["Node.js", "Tornado"]
    line = next(layer for layer in chart["concat"][1]["layer"] if "color" in layer["encoding"])
    assert line["encoding"]["color"]["scale"]["domain"] == ["Python 2.7", "Python 3.11", "its own"]
    assert charts.over_years(frame.clear(), "CPU") is None


RATE_RPS = 1000
CHAPTER = "paper/years/notebooks/09-history.ipynb"


@pytest.fixture(scope="module")
def two_releases(shared_tree: Tree, miniature: str) -> Tree:
    """A tree with a dataset of two releases of Tornado that searched for no capacity.

    Their trials are the miniature's.
    """
    tree = shared_tree
    tree.dataset("years", ["tornado"], [RATE_RPS], 5, trials=3, experiment="history")
    tree.replace("config/datasets/years.toml", "seed = 1", "seed = 1\nfrozen = true")
    folder = tree.path / "data" / "years" / "history"
    folder.mkdir(parents=True)
    for table in TABLES:
        frame = tables.read(miniature, "history", table)
        frame = frame.filter(pl.col("server").is_in(["tornado-1", "tornado"]))
        if "offered_rate_rps" in frame.columns:
            # A rate that both were offered.
            frame = frame.filter(offered_rate_rps=RATE_RPS)
        tables.write(frame, "history", table, folder)
    return tree


def test_a_chapter_without_a_search_says_so(two_releases: Tree):
    two_releases.snakemake(CHAPTER, dataset="years").succeeded()
    cells = json.loads((two_releases.path / CHAPTER).read_text())["cells"]
    prose = "\n".join(cell["source"] for cell in cells if cell["cell_type"] == "markdown")
    told = r"a reply takes more CPU time with the last release in [01] of 1 systems"
    assert re.search(told, prose)
    shown = json.dumps([cell.get("outputs") for cell in cells])
    assert "data/years/history/points.parquet" in shown
    assert searched.NO_SEARCH in shown and "search then finds" not in prose
    assert "fig-history-cpu" in shown and "fig-history-capacity" not in shown
