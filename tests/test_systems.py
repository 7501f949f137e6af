"""The version of each system, and whether its answers were right."""

import polars as pl

from deathmatch.analysis import systems, views
from deathmatch.plan import files


def test_the_servers_of_a_dataset(miniature):
    known = systems.measured(views.trials(miniature))
    assert known.keys() < set(files.names("server")), "the miniature has not all of them"
    yucan = known["yucan"]
    assert yucan["version"].startswith("Yucan on OTP 25")
    assert yucan["conformance"].startswith("passed in ")
    assert systems.variants(files.server("yucan")) == "one or all CPUs"


def test_conformance_in_words():
    found = pl.DataFrame(
        {"outcome": ["measured", "measured, with failures", "answers wrongly"],
         "reason": ["", "", "ask: status 500\nlog"],
         "deviations": [["HTTP/1.0"], [], ["ask"]]}
    )  # fmt: skip
    assert systems.conformance(found[:2]) == "passed in 2 of 2 trials, but for: HTTP/1.0"
    assert systems.conformance(found) == "answers wrongly in 1 of 3 trials: ask: status 500"
