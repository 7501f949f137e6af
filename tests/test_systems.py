"""The table of every system: its row for a trial that was measured, and for those that were not."""

import shutil

import polars as pl
import pytest
from conftest import ROOT, Tree, copy_tree

from deathmatch.analysis import systems, views
from deathmatch.analysis.reply_rates import RATE, REPLY
from deathmatch.plan import files
from deathmatch.run import study

MEASURED = ROOT / "tests" / "data" / "yucan"


@pytest.fixture(scope="module")
def tree(tmp_path_factory, network) -> Tree:
    """A tree whose dataset `tiny` is the kept trial of Yucan: its client shared a CPU with it."""
    tree = Tree(copy_tree(tmp_path_factory.mktemp("systems") / "tree"), network)
    levels = 'backlog = [1]\nschedulers = ["all"]\nsomaxconn = [128]'
    tree.dataset("tiny", ["yucan"], [500, 2000], levels=levels)
    shutil.copytree(MEASURED, tree.path / "data/tiny/backlog/yucan")
    tree.deathmatch("tidy", "data/tiny/backlog").succeeded()
    return tree


ROWS = """
from deathmatch.analysis import systems
for row in systems.systems("tiny").rows():
    print(*row, sep=" | ")
"""


def test_a_row_for_every_folder(tree: Tree):
    lines = tree.run("python", "-c", ROWS).succeeded().text.splitlines()
    assert len(lines) == len(files.names("server"))
    rows = {line.split(" | ")[1]: line.split(" | ")[4:] for line in lines}
    assert rows["Yucan"] == [
        "Yucan on OTP 25, erts 13.1.5, jit", "one or all CPUs", "passed in 1 of 1 trials",
        "backlog client-limited at every rate",
    ]  # fmt: skip
    assert rows["Tornado"][-1] == "not in this dataset"
    assert rows["Misultin"][-1].startswith("not run: Misultin was discontinued in 2012")


def test_the_chapter_is_of_every_experiment():
    chapter = ROOT / "notebooks" / "11-systems.md"
    assert sorted(study.experiments_of(chapter)) == sorted(files.names("experiment"))


def experiment(points: list[dict]) -> views.Experiment:
    made = views.Experiment("tiny", "backlog")
    common = {"server": "a", "title": "A", "label": "A", "client_limited": False}
    # Its trials are those of the points.
    made.__dict__["points"] = pl.DataFrame([common | point for point in points])
    made.__dict__["trials"] = made.points
    return made


def point(variant: str, n: int, rate_rps: int, reply_rps: float, **more) -> dict:
    return {"variant": variant, "n": n, RATE: rate_rps, REPLY: reply_rps} | more


def test_the_best_variant_is_shown_with_its_own_n():
    points = [
        point("x", 1, 100, 90.0), point("x", 1, 200, 150.0), point("x", 2, 200, 170.0),
        point("y", 1, 200, 180.0, label="A, tuned"),
    ]  # fmt: skip
    assert systems.figure(experiment(points), "a") == "180 req/s (tuned, n = 1)"
    assert systems.figure(experiment(points[:3]), "a") == "160 req/s (n = 2)"
    assert systems.figure(experiment(points), "b") == ""


def test_the_limit_of_the_client_is_told():
    limited = [point("x", 1, 200, 150.0, client_limited=True)]
    assert systems.figure(experiment(limited), "a") == "client-limited at every rate"
    found = systems.figure(experiment([point("x", 1, 100, 90.0), *limited]), "a")
    # What a client at its limit got out of the server, the server can answer.
    assert found == "at least 150 req/s (n = 1)"


def test_the_closed_loop_stands_for_overhead():
    points = [point("x", 1, 0, 3000.0), point("x", 1, 9000, 8000.0)]
    assert systems.figure(experiment(points), "a") == "3\u202f000 req/s (n = 1)"


def test_stored_messages_are_of_the_size_of_the_chapter_on_storage():
    made = views.Experiment("tiny", "storage")
    common = {"server": "a", "variant": "x", "configuration": "ets", "n": 1,
              "title": "A", "label": "A", "runtime_bytes": 0}  # fmt: skip
    sizes = {100: 40.0, 1000: 3.0}
    made.__dict__["points"] = pl.DataFrame([
        common | {"body_bytes": body, "messages": messages, "rss_bytes": int(messages * each)}
        for body, each in sizes.items() for messages in (0, 1000)
    ])  # fmt: skip
    made.__dict__["trials"] = made.points
    assert systems.figure(made, "a") == "40 bytes/message (n = 1)"


def test_conformance_in_words():
    found = pl.DataFrame(
        {"outcome": ["measured", "measured, with failures", "answers wrongly"],
         "reason": ["", "", "ask: status 500\nlog"],
         "deviations": [["HTTP/1.0"], [], ["ask"]]}
    )  # fmt: skip
    assert systems.conformance(found[:2]) == "passed in 2 of 2 trials, but for: HTTP/1.0"
    assert systems.conformance(found[1:2]) == "passed in 1 of 1 trials"
    assert systems.conformance(found) == "answers wrongly in 1 of 3 trials: ask: status 500"
    assert systems.conformance(found[:0]) is None
