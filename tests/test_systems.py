"""The version of each system, and whether its answers were right."""

import polars as pl

from deathmatch.analysis import systems
from deathmatch.plan import files


def test_a_row_for_every_folder(miniature):
    rows = {name: row for name, *row in systems.systems(miniature).rows()}
    assert list(rows) == files.names("server")
    version, conformance = rows["yucan"]
    assert version.startswith("Yucan on OTP 25") and conformance.startswith("passed in ")
    assert None in {version for version, _ in rows.values()}, "the miniature has not all of them"
    assert systems.variants(files.server("yucan")) == "one or all CPUs"


def test_conformance_in_words():
    found = pl.DataFrame(
        {"outcome": ["measured", "measured, with failures", "answers wrongly"],
         "reason": ["", "", "ask: status 500\nlog"],
         "deviations": [["HTTP/1.0"], [], ["ask"]]}
    )  # fmt: skip
    assert systems.conformance(found[:2]) == "passed in 2 of 2 trials, but for: HTTP/1.0"
    assert systems.conformance(found) == "answers wrongly in 1 of 3 trials: ask: status 500"
    assert systems.conformance(found[:0]) is None
