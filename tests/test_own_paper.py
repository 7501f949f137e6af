"""The paper of a dataset of one's own: its servers come first, and nothing is said of no claim."""

import re

import polars as pl
import pytest
from conftest import Tree, copy_tree

from deathmatch.data import tables
from deathmatch.paper import own
from deathmatch.plan.dataset import TABLES
from deathmatch.run import cli_config

SERVERS = ("node", "yucan")
# A title of two lines may not end the metadata.
TITLE = r"mine @ home: *two*\nservers [1]"
FILE = f"""
title = "{TITLE}"
trials = 1
seed = 1

[experiments.backlog]
rates_rps = [1000]
duration_s = 1

[[experiments.backlog.grids]]
servers = ["yucan"]
"""
ALL = {"testbed": "netns", "servers": "all", "experiments": "all"}


@pytest.fixture(scope="module")
def tree(tmp_path_factory, network) -> Tree:
    """A copy with one round of two servers in two experiments; no point of one of them counts."""
    tree = Tree(copy_tree(tmp_path_factory.mktemp("own") / "tree"), network)
    tree.write("config/datasets/mine.toml", FILE)
    for experiment in ("backlog", "single-thread"):
        folder = tree.path / "data/mine" / experiment
        folder.mkdir(parents=True)
        for table in TABLES:
            frame = tables.read("reference", experiment, table)
            frame = frame.filter(pl.col("server").is_in(SERVERS), pl.col("n") == 1)
            if table == "points":
                client = pl.col("server") == "yucan"
                limit = pl.when(client).then(pl.lit("client")).otherwise("limit")
                frame = frame.with_columns(client_limited=client, limit=limit)
            tables.write(frame, experiment, table, folder)
    return tree


def test_a_dataset_of_ones_own_begins_with_its_servers(tree: Tree):
    made = []
    for name in (own.NOTEBOOK, "04-static", "20-claims"):
        made.append(f"paper/mine/notebooks/{name}.ipynb")
        words = [f"notebooks/{name}.md", "--dataset", "mine", "--out", made[-1]]
        tree.deathmatch("notebook", *words).succeeded()
    words = ["--dataset", "mine", "--out", "paper/mine", "--notebooks", *made]
    tree.deathmatch("paper", *words).succeeded()
    page = (tree.path / "paper/mine/deathmatch.html").read_text()
    assert re.search(r'<h1 class="title">\s*mine @ home: \*two\* servers \[1\]\s*</h1>', page)
    text = " ".join(re.sub(r"<script.*?</script>|<[^>]+>", " ", page, flags=re.S).split())
    assert "of 2 servers, " in text
    assert re.search(r"client-limited at \d+ of \d+ points", text)
    assert not re.search(r"\b1 servers|\b0 are (not )?replicated|not run\.", text)
    first = re.findall(r'<h1[^>]*id="([^"]+)"', page)[0]
    assert first == "sec-yours"
    figure = page.index('id="fig-yours"')
    assert page.index('id="sec-yours"') < page.index('id="tbl-yours"') < figure
    assert figure < page.index('id="sec-posts"')
    left_out = "left out: “Static files in full”."
    assert left_out in text and 'id="sec-static' not in page
    assert "no point to draw" not in text


def test_only_a_dataset_of_few_servers_begins_with_them(monkeypatch):
    def begins(dataset: str, **chosen: str) -> bool:
        settings = cli_config.settings(ALL | {"dataset": dataset} | chosen)
        return cli_config.study(settings).own

    assert not begins("reference") and not begins("quick")
    assert begins("quick", servers="tornado") and begins("capacity")
