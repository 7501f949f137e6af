"""`deathmatch measure`: a small real run, and the card that it writes."""

import json
import re
import tomllib

import pytest
from conftest import Tree, copy_tree

from deathmatch.data import records, tidy
from deathmatch.plan import measure_design, release
from deathmatch.quantities.quantity import REPLY

WRITE = """
import sys
from deathmatch.paper import card
from deathmatch.plan import files
print(card.write("mine", "backlog", files.server(sys.argv[1])))
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory, network) -> Tree:
    """A copy in which a good server was measured, compared with a wrong one and the null server."""
    tree = Tree(copy_tree(tmp_path_factory.mktemp("card") / "tree"), network)
    tree.server("mine", "ok")
    tree.server("wrong", "wrong")
    words = ["mine", "--against", "wrong,null", "--minutes", "0.1"]
    done = tree.deathmatch("measure", *words).succeeded()
    assert done.text.endswith("paper/mine/card.html\n")
    assert "the time of the search is over; first rates only for " in done.text
    assert "no time for round 2 of 3" in done.text
    return tree


def test_a_card_shows_the_server_whatever_came_out(tree: Tree):
    card = json.loads((tree.path / "paper/mine/card.json").read_text())
    assert card["servers"][0]["server"] == "mine"
    assert {row["server"] for row in card["servers"]} == {"mine", "wrong", "null"}
    # On a busy machine no point may count; the sentence has a number all the same.
    assert card["verdict"].startswith("mine answer")
    page = (tree.path / "paper/mine/card.html").read_text()
    assert "wrong: answers wrongly: " in page and "1 of 3 rounds were measured" in page
    assert f"version {release.version()}, commit " in page
    assert page.count("<svg") == 2 and ">mine<" in page
    assert not re.search(r"(src|href)=", page.replace("xlink:href", ""))


def test_a_card_names_how_the_kernel_saw_its_queue_and_how_to_measure_the_rest(tree: Tree):
    card = json.loads((tree.path / "paper/mine/card.json").read_text())
    facts = card["facts"]
    queue = facts["Listen backlog"]
    assert re.match(r"the experiment sets none, the kernel has [\d\u202f]+", queue)
    assert facts["Memory per idle connection"].startswith("not measured: only c10k measures it")
    assert 'readiness = ["epoll"] below [factors]' in facts["Readiness mechanism"]
    # Each row has numbers; those of points that do not count are in parentheses.
    page = (tree.path / "paper/mine/card.html").read_text()
    for row in card["servers"]:
        if row["outcome"] == "measured":
            rate = row["reply_rate_rps"]["median"]
            assert rate > 0
            assert (f"({rate:,.0f}" in page.replace("\u202f", ",")) is not row["counts"]


def test_a_card_fits_a_phone_and_two_sheets_of_paper(tree: Tree, browser, tmp_path):
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto((tree.path / "paper/mine/card.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    # An A4 sheet less its margins.
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 703, "height": 1000})
    assert page.evaluate("document.documentElement.scrollWidth") <= 703
    cut = "[...document.querySelectorAll('.wide')].filter(box => box.scrollWidth > box.clientWidth)"
    assert page.evaluate(f"{cut}.length") == 0
    printed = page.pdf(format="A4", prefer_css_page_size=True)
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 2
    page.close()


def test_the_search_ends_when_its_time_is_over(tree: Tree):
    # Six seconds are less than one round takes, with whichever load on the machine.
    dataset = tomllib.loads((tree.path / "config/datasets/mine.toml").read_text())
    plan = dataset["experiments"]["backlog"]
    assert plan["duration_s"] == measure_design.LEAST_S
    rates = {grid["servers"][0]: tuple(grid["rates_rps"]) for grid in plan["grids"]}
    [record] = tree.path.glob("data/mine-search/backlog/null/*/1/trial.json")
    assert "search" not in records.read(record)["spec"]
    answered = tidy.frames("backlog", [record])["points"]
    assert rates["null"] == measure_design.own_rates(answered[REPLY].max())


def test_nothing_of_the_search_lies_in_the_paper(tree: Tree):
    assert not list(tree.path.glob("paper/mine-search")) and (tree.path / "paper/mine").is_dir()


@pytest.mark.parametrize(
    "trial_s, duration_s", [(1000, 10), (75, 5), (29, 2), (13, 2), (9, 1), (-50, 0.5)]
)
def test_rates_are_as_short_as_the_time_left_asks(trial_s: float, duration_s: float):
    assert measure_design.duration_s(trial_s, around_s=5, rounds=3) == duration_s


def test_a_server_that_was_not_measured_has_a_card_with_the_reason(tree: Tree):
    tree.run("python", "-c", WRITE, "wrong").succeeded()
    card = json.loads((tree.path / "paper/mine/card.json").read_text())
    assert card["verdict"].startswith("wrong was not measured: answers wrongly: ")


def test_a_dataset_of_that_name_is_not_overwritten(tree: Tree):
    tree.server("smoke", "ok")
    said = tree.deathmatch("measure", "smoke").failed().text
    assert "there is another dataset called 'smoke'" in said and "--name" in said
    said = tree.deathmatch("measure", "mine", "--against", "postgres").failed().text
    assert "there is no server 'postgres'" in said
