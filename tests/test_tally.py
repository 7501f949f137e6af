"""How old what a verdict stands on is, and how verdicts are counted."""

from dataclasses import replace

import pytest

from deathmatch.analysis import claims, judging, published, releases, verdict_words
from deathmatch.analysis.ledger import Entry, Verdict
from deathmatch.analysis.releases import Age
from deathmatch.plan import files

CLAIM = {"source": "walkin2009"}
OLD, PATCHED = Age("A 1", 2010, 2010), Age("B 2", 2012, 2020)


@pytest.mark.parametrize(
    ("compared", "of_time"),
    [
        ((OLD,), True),
        ((OLD, PATCHED), True),  # its series is of the time
        ((OLD, Age("C 3", 2013, 2013)), False),
        ((OLD, Age("D 4", None, None)), False),
        ((), False),
    ],
)
def test_a_verdict_is_of_the_time_if_every_side_is(compared, of_time):
    assert releases.of_the_time(CLAIM, compared) is of_time


def test_both_years_are_named_where_they_differ():
    assert OLD.phrase == "A 1 (2010)"
    assert PATCHED.phrase == "B 2 (series of 2012, released 2020)"
    assert Age("C 3", 2022, 2020).phrase == "C 3 (2020, on a runtime of 2022)"
    assert Age("D 4", None, None).phrase == "D 4 (no date)"


def test_a_series_is_older_than_its_release_unless_its_runtime_is_younger():
    known = {server.name: server.release for server in files.servers() if server.release}
    assert known["tornado-1"].series_year < known["tornado-1"].year
    assert (known["yucan-otp23"].series_year, known["cowboy"].series_year) == (2020, 2022)


def test_the_releases_of_a_claim_are_those_of_all_its_servers_but_instruments():
    by_id = {claim["id"]: claim for claim in published.claims()}
    claim = by_id["walkin-tornado-beats-yucan-one-core"]
    names = {age.name for age in releases.ages("never-measured", claim)}
    assert names == {files.server(name).release.name for name in ("tornado", "yucan")}
    assert releases.ages("never-measured", by_id["williams-time-wait-exhausts-ports"]) == ()


def test_claims_that_oppose_each_other_are_found_by_their_rules():
    compared = {"experiment": "x", "rule": {"kind": "ratio", "a": {"server": "a"}}}

    def claim(name: str, **claimed) -> dict:
        return compared | {"id": name, "rule": compared["rule"] | claimed}

    known = [
        claim("even", low=0.9, high=1.1, kind="within"),
        claim("more", threshold=1.25, direction="above"),
        claim("some more", threshold=1.0, direction="above"),
        claim("many", threshold=2.0, direction="above", a={"server": "b"}),
    ]
    assert verdict_words.opposing(known) == [("even", "more")]
    assert len(verdict_words.opposing(published.claims())) >= 2


def entries() -> list[Entry]:
    """Return a ledger in which a pair that opposes is decided, and one claim more."""
    (first, second), *_ = verdict_words.opposing(published.claims())
    chosen = [claim for claim in published.claims() if claim["id"] in (first, second)]
    chosen.append(next(c for c in published.claims() if c["role"] == "result"))
    made = [claims.entry("never-measured", claim) for claim in chosen]
    no, yes = (Verdict(word) for word in (judging.NOT, judging.REPLICATED))
    old_yes = replace(yes, of_the_time=True)
    return [
        replace(made[0], then=no, now=Verdict(judging.OPEN)),
        replace(made[1], then=yes, now=yes),
        replace(made[2], role="result", then=old_yes, now=no),
    ]


def test_opposing_claims_count_once_and_the_decided_one_counts():
    ledger = entries()
    assert verdict_words.count(ledger, verdict_words.OLDEST, judging.NOT) == 1
    assert verdict_words.count(ledger, verdict_words.OLDEST, judging.REPLICATED) == 0
    assert verdict_words.count(ledger, verdict_words.NOW, judging.REPLICATED) == 1
    assert verdict_words.count(ledger, verdict_words.NOW, judging.OPEN) == 0


def test_results_are_counted_apart():
    table = verdict_words.by_role(entries())
    result = table.filter(role="result", age=verdict_words.OF_THE_TIME).row(0, named=True)
    assert result[judging.REPLICATED] == 1 and result[judging.NOT] == 0
    whole = table.filter(role="all", age=verdict_words.OF_THE_TIME).row(0, named=True)
    assert whole == result | {"role": "all"}
