"""A server that is named on the command line, in a dataset whose grids name others."""

import polars as pl
from conftest import Tree

TABLE = "data/tiny/backlog/trials.parquet"


def test_a_server_that_is_named_is_measured_and_kept(tree: Tree):
    tree.dataset("tiny", ["null"], [100])
    tree.server("mine", "ok")
    done = tree.snakemake(TABLE, dataset="tiny", servers="mine,otp-store").succeeded()
    said = "servers/otp-store does not serve backlog; it serves storage"
    assert said in done.text and "servers/mine does not serve" not in done.text

    def measured() -> set[str]:
        return set(pl.read_parquet(tree.path / TABLE)["server"])

    assert measured() == {"mine"}
    # Trials of a server that was named before stay in the tables, and are not to be removed.
    tree.snakemake(TABLE, dataset="tiny").succeeded()
    assert measured() == {"mine", "null"}
    assert "DM-UNPLANNED" not in tree.deathmatch("check", "tiny").text
    # Trials with rates that the dataset no longer has do not stay.
    tree.replace("config/datasets/tiny.toml", "rates_rps = [100]", "rates_rps = [200]")
    tree.snakemake(TABLE, dataset="tiny").succeeded()
    assert measured() == {"null"}
