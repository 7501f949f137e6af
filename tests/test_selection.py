"""A server that is named on the command line, in a dataset whose grids name others."""

import shutil

import polars as pl
from conftest import Tree

TABLE = "data/tiny/backlog/trials.parquet"


def test_a_server_that_is_named_is_measured_and_kept(tree: Tree):
    tree.dataset("tiny", ["null"], [100])
    tree.server("mine", "ok")
    done = tree.snakemake(TABLE, dataset="tiny", servers="mine,otp-store").succeeded()
    said = "servers/otp-store does not serve backlog; it serves storage"
    assert said in done.text and "servers/mine does not serve" not in done.text

    def measured() -> set[tuple[str, int]]:
        return set(pl.read_parquet(tree.path / TABLE).select("server", "n").rows())

    assert measured() == {("mine", 1)}
    # Trials of a server that was named before stay in the tables, and are not to be removed.
    tree.snakemake(TABLE, dataset="tiny").succeeded()
    assert measured() == {("mine", 1), ("null", 1)}
    assert "DM-UNPLANNED" not in tree.deathmatch("check", "tiny").text
    # A server that the dataset does not plan stays only with the dataset's present rates, and a
    # round that it does not plan is in no table.
    tree.replace("config/datasets/tiny.toml", "rates_rps = [100]", "rates_rps = [200]")
    first = tree.trials("tiny")["null", 1]
    shutil.copytree(first, first.with_name("2"))
    tree.deathmatch("tidy", "data/tiny/backlog").succeeded()
    assert measured() == {("null", 1)}
