"""The age of the releases behind a verdict, and counts of verdicts."""

from dataclasses import replace

import pytest

from deathmatch.analysis import claims, judging, published, releases, verdict_words
from deathmatch.analysis.comparison import Comparison
from deathmatch.analysis.ledger import Entry, Verdict
from deathmatch.analysis.releases import Age
from deathmatch.plan import files

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
    assert releases.of_the_time("walkin2009", compared) is of_time


def test_a_series_is_older_than_its_release_unless_its_runtime_is_younger():
    known = {server.name: server.release for server in files.servers() if server.release}
    assert known["tornado-1"].series_year < known["tornado-1"].year
    assert (known["yucan-otp23"].series_year, known["cowboy"].series_year) == (2020, 2022)
    assert PATCHED.phrase == "B 2 (series of 2012, released 2020)"


def test_the_releases_of_a_claim_are_those_of_all_its_servers_but_instruments():
    def ages(*servers: str) -> set[str]:
        compared = [Comparison(a={"server": name}, statistic="died", low=0.5) for name in servers]
        return {age.name for age in releases.ages(compared)}

    named = {files.server(name).release.name for name in ("tornado", "yucan")}
    assert ages("tornado", "yucan", "null") == named


def test_claims_that_oppose_each_other_are_found_by_what_they_compare():
    base = published.claims()[0]

    def claim(name: str, server: str = "a", **claimed) -> published.Claim:
        one = Comparison(a={"server": server}, statistic="died", **claimed)
        return base.model_copy(update={"id": name, "now": (one,)})

    known = [
        claim("even", low=0.9, high=1.1),
        claim("more", low=1.25),
        claim("some more", low=1.0),
        claim("many", "b", low=2.0),
    ]
    assert verdict_words.opposing(known) == [("even", "more")]
    assert len(verdict_words.opposing(published.claims())) >= 2


def entries() -> list[Entry]:
    """Return a ledger in which a pair that opposes is decided, and one claim more."""
    (first, second), *_ = verdict_words.opposing(published.claims())
    chosen = [claim for claim in published.claims() if claim.id in (first, second)]
    chosen.append(next(claim for claim in published.claims() if claim.role == "result"))
    made = [claims.entry("never-measured", claim) for claim in chosen]
    no, yes = (Verdict(word) for word in (judging.NOT, judging.REPLICATED))
    old_yes = replace(yes, of_the_time=True)
    return [
        replace(made[0], then=no, now=Verdict(judging.OPEN)),
        replace(made[1], then=yes, now=yes),
        replace(made[2], role="result", then=old_yes, now=no),
    ]


def test_opposing_claims_count_once_and_the_decided_one_counts():
    table = verdict_words.by_role(entries())

    def counts(role: str, age: str) -> list[int]:
        (row,) = table.filter(role=role, age=age).to_dicts()
        return [row[word] for word in (judging.REPLICATED, judging.NOT, judging.OPEN)]

    assert counts("all", verdict_words.OLDEST) == [0, 1, 0]
    assert counts("all", verdict_words.NOW) == [1, 1, 0]
    # Results are counted apart.
    for role in ("result", "all"):
        assert counts(role, verdict_words.OF_THE_TIME) == [1, 0, 0]


@pytest.mark.parametrize(
    ("verdicts", "word"),
    [
        (["replicated"] * 2 + ["not replicated"], "holds"),
        (["replicated"] * 3 + ["not replicated"] * 2, "holds in part"),
        (["replicated"] + ["not replicated"] * 2, "does not hold"),
        (["replicated"] + ["inconclusive"] * 2, "could not be told"),
        (["fragile"] * 2 + ["not replicated"], "could not be told"),
        (["not replicated", "inconclusive"], "does not hold"),
    ],
)
def test_the_verdict_of_a_post_counts_results_that_survive_the_correction(verdicts, word):
    kept = Verdict(judging.REPLICATED, fragile="fragile (Holm)")
    made = [
        replace(
            claims.entry("never-measured", published.claims()[0]), claim=str(place), role="result",
            now=kept if said == "fragile" else Verdict(said),
        )
        for place, said in enumerate(verdicts)
    ]  # fmt: skip
    objection = replace(made[0], claim="other", role="objection", now=Verdict(judging.NOT))
    (row,) = verdict_words.posts([*made, objection]).to_dicts()
    assert row["word"] == word
    assert row["hold"] + row["fail"] + row["untold"] == row["results"] == len(verdicts)
