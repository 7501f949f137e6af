"""The rate that stands for a share of a capacity that searches found."""

import polars as pl
import pytest
from conftest import ROOT

from deathmatch.analysis import selecting

NODE = frozenset({("server", "node")})


@pytest.mark.parametrize("share", [0.4, 0.667, 0.8, 5])
def test_a_share_is_of_what_searches_found(share):
    """The rate nearest to it by its ratio, if that is within a factor of 1.2."""
    folder = ROOT / "data" / "dynamic-times" / "dynamic"
    probes, points = (pl.read_parquet(folder / f"{name}.parquet") for name in ("probes", "points"))
    found = probes.filter(server="node", outcome="found")["capacity_rps"]
    assert 3 <= len(found) < points.filter(server="node")["n"].n_unique()
    wanted_rps = share * found.median()
    offered = points.filter(server="node")["offered_rate_rps"].unique().to_list()
    near = [rate for rate in offered if 1 / 1.2 <= rate / wanted_rps <= 1.2]
    expected = min(near, key=lambda rate: abs(rate / wanted_rps - 1), default=None)
    assert selecting.rate_at_share("dynamic-times", "dynamic", NODE, share) == expected
