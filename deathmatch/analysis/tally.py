"""How many claims have which verdict: by the age of what ran, and by the role of the claim.

In: the entries of a ledger. Out: counts. Two claims that oppose each other are one question, and
count once.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from itertools import combinations

import polars as pl

from deathmatch.analysis import judging, published
from deathmatch.analysis.judging import DECIDED, VERDICTS
from deathmatch.analysis.ledger import Entry, Verdict

OF_THE_TIME, OLDEST, NOW = "then, of the time", "then, oldest that runs", "now"
AGES = (OF_THE_TIME, OLDEST, NOW)
"""On what a verdict stands: OF_THE_TIME where all releases are within `ages.WITHIN_YEARS`."""
ROLES = ("result", "explanation", "objection", "reply")
# Keys of a rule that say what is claimed, not what is compared.
_CLAIMED = ("kind", "threshold", "direction", "low", "high", "text", "basis")


def opposing(claims: Sequence[dict]) -> list[tuple[str, str]]:
    """Return the pairs of claims on one comparison of which at most one can hold."""
    alike = defaultdict(list)
    for claim in claims:
        alike[_comparison(claim)].append(claim)
    return [
        (first["id"], second["id"])
        for of_one in alike.values()
        for first, second in combinations(of_one, 2)
        if _disjoint(first["rule"], second["rule"])
    ]


@cache
def _opposing_of_ledger(_mtime_ns: int) -> list[tuple[str, str]]:
    """Return the pairs of claims.toml, whose time of change says whether they are read anew."""
    return opposing(published.claims())


def _comparison(claim: dict) -> str:
    compared = {key: part for key, part in claim["rule"].items() if key not in _CLAIMED}
    return json.dumps([claim["experiment"], compared], sort_keys=True)


def _disjoint(first: dict, second: dict) -> bool:
    ranges = [_range(rule) for rule in (first, second)]
    if None in ranges:
        return False
    (low, high), (other_low, other_high) = ranges
    return high <= other_low or other_high <= low


def _range(rule: dict) -> tuple[float, float] | None:
    """Return what a rule of one comparison claims; None of a rule with several parts."""
    if "low" in rule:
        return rule["low"], rule["high"]
    if rule["kind"] not in ("ratio", "level"):
        return None
    return judging.claimed_range(rule["threshold"], rule["direction"])


def questions(entries: Sequence[Entry], age: str) -> list[tuple[Entry, Verdict]]:
    """Return the claims with their verdicts on what is of an age: of a pair that opposes, one.

    That is the one which is decided, or else the first.
    """
    made = [(entry, entry.now if age == NOW else entry.then) for entry in entries]
    if age != NOW:
        made = [one for one in made if one[1].of_the_time == (age == OF_THE_TIME)]
    by_claim = {entry.claim: (entry, verdict) for entry, verdict in made}
    for first, second in _opposing_of_ledger(published.CLAIMS.stat().st_mtime_ns):
        if first in by_claim and second in by_claim:
            undecided = by_claim[first][1].verdict not in DECIDED
            second_decides = by_claim[second][1].verdict in DECIDED
            del by_claim[first if undecided and second_decides else second]
    return list(by_claim.values())


def count(entries: Sequence[Entry], age: str, word: str, role: str = "") -> int:
    """Return how many questions have a verdict; with `role`, of claims in that role."""
    return sum(
        verdict.verdict == word and role in ("", entry.role)
        for entry, verdict in questions(entries, age)
    )


def by_role(entries: Sequence[Entry]) -> pl.DataFrame:
    """Return the counts: role ("all" last), age, and a column for each of VERDICTS."""
    rows = [
        {"role": role or "all", "age": age}
        | {word: count(entries, age, word, role) for word in VERDICTS}
        for role in (*ROLES, "")
        for age in AGES
    ]
    kinds = {"role": pl.String, "age": pl.String} | dict.fromkeys(VERDICTS, pl.Int64)
    return pl.DataFrame(rows, schema=kinds)
