"""Claims that a dataset leaves to another one, which was planned for them."""

from dataclasses import replace

import pytest

from deathmatch.analysis import claims, judging
from deathmatch.data import rule_record
from deathmatch.plan import designs, files, matrix

ELSEWHERE = [
    (dataset, other)
    for dataset in files.names("dataset")
    for other in files.dataset(dataset).decided_by
]


@pytest.fixture(scope="module")
def entries() -> dict[str, list[claims.Entry]]:
    """What each dataset's own trials decide."""
    return {name: claims.of_dataset(name) for name in {name for pair in ELSEWHERE for name in pair}}


@pytest.fixture(scope="module")
def ledgers(entries) -> dict[str, list[claims.Entry]]:
    """The ledger of each dataset that leaves claims to others."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claims, "of_dataset", entries.__getitem__)
        return {name: claims.ledger(name) for name, _ in ELSEWHERE}


def test_some_dataset_leaves_claims_to_another():
    assert ("reference", "layers") in ELSEWHERE


@pytest.mark.parametrize(("dataset", "other"), ELSEWHERE)
def test_the_ledger_has_the_other_s_verdict_on_each_claim_whose_design_it_meets(
    entries, ledgers, dataset, other
):
    left = {claim for claim, name in claims.decided_elsewhere(dataset).items() if name == other}
    assert left and left <= designs.met(matrix.trials(other))
    own, theirs = (
        {entry.claim: (entry.then.verdict, entry.now.verdict) for entry in entries[name]}
        for name in (dataset, other)
    )
    for entry in ledgers[dataset]:
        assert entry.dataset == (other if entry.claim in left else entry.dataset)
        if entry.dataset in (dataset, other):
            expected = theirs if entry.claim in left else own
            assert (entry.then.verdict, entry.now.verdict) == expected[entry.claim]


@pytest.mark.parametrize("verdict", judging.VERDICTS)
def test_a_verdict_counts_whatever_it_is(entries, monkeypatch, verdict):
    deciders = files.dataset("reference").decided_by

    def planted(dataset: str) -> list:
        word = verdict if dataset in deciders else judging.REPLICATED
        return [
            replace(
                entry,
                then=replace(entry.then, verdict=word),
                now=replace(entry.now, verdict=word),
            )
            for entry in entries[dataset]
        ]

    left = claims.decided_elsewhere("reference").keys()
    monkeypatch.setattr(claims, "of_dataset", planted)
    words = {entry.claim: entry.now.verdict for entry in claims.ledger("reference")}
    assert {words[claim] for claim in left} == {verdict}
    assert {words[claim] for claim in words.keys() - left} == {judging.REPLICATED}


@pytest.mark.parametrize("other", sorted({other for _, other in ELSEWHERE}))
def test_a_claim_is_not_left_to_a_dataset_that_lacks_one_trial_of_its_design(other):
    trials = matrix.trials(other)
    met = designs.met(trials)
    for claim in sorted(met):
        own = [design for design in designs.designs() if design.claim == claim]
        server, variant = own[0].variants[0]
        served = [
            trial for trial in trials
            if trial.server.name == server and trial.experiment.name == own[0].experiment
            and designs.without_load_generator(trial.variant) == variant
        ]  # fmt: skip
        spare = [trial for trial in served if trial.n >= own[0].grid.trials]
        left = [trial for trial in trials if trial not in spare]
        assert spare and claim not in designs.met(left), claim


# Written otherwise after the trials, to the same effect: `as_source`, which is gone, gave all of a
# rule's selectors a level that they have themselves now, or one that was never measured there.
REWRITTEN = {"moritz-pypy-beats-cpython-tornado", "day-second-process-scales-wsgi"}
# They compared the most of a sweep, or what a search found, where they compare one quantity now.
DEFINED_ANEW = {
    "day-second-process-more-than-doubles-echo",
    "day-webob-adds-overhead",
    "day-webob-adds-overhead-one-process",
    "day-wrapper-three-times-wsgi",
    "day-wsgi-overhead-significant",
    "ostinelli-big-applications-flatten",
    "ostinelli-cowboy-leads-mochiweb",
    "ostinelli-mochiweb-leads-node",
    "ostinelli-node-leads-tornado",
    "ostinelli-warp-leads-tornado-and-node",
    "walkin-active-mode-harmless",
    "walkin-active-mode-overloads",
    "walkin-backlog-helps-python-most",
    "walkin-epoll-faster-with-many-descriptors",
    "walkin-epoll-no-faster-without-idle-connections",
    "walkin-native-code-no-difference",
    "walkin-some-backlog-helps-everyone",
    "walkin-tornado-beats-yucan-one-core",
    "walkin-yaws-slowed-by-its-configuration",
}


@pytest.mark.parametrize(("dataset", "other"), ELSEWHERE)
def test_the_rules_of_claims_left_to_a_dataset_are_those_of_its_first_trial(dataset, other):
    record = rule_record.read(other)
    today = rule_record.hashes(rule_record.CLAIMS.read_text())
    left = {claim for claim, name in claims.decided_elsewhere(dataset).items() if name == other}
    changed = {claim for claim in left if today[claim] != record.rules[claim]}
    assert changed <= REWRITTEN | DEFINED_ANEW
