"""Verdicts in words and in numbers.

In: entries of a ledger. Out: entries as cells and sentences; counts of verdicts by the age of the
releases and the role of the claim. Two opposing claims are one question, and count once.
"""

from collections.abc import Sequence
from itertools import combinations

import polars as pl

from deathmatch.analysis import phrases, published
from deathmatch.analysis.comparison import INFINITE, Comparison
from deathmatch.analysis.judging import DECIDED, NOT, REPLICATED, TESTED, VERDICTS
from deathmatch.analysis.ledger import Entry, Verdict
from deathmatch.analysis.published import Claim
from deathmatch.analysis.stats import Interval

ON_EDGE = "the threshold is within the spread between trials"


def cell(verdict: Verdict) -> str:
    """Return a verdict in a line of Markdown, "**replicated, fragile (Holm)**: 2 [1, 3], n = 3".

    Only verdicts of a test have a number.
    """
    word = ", ".join(filter(None, [verdict.verdict, verdict.fragile]))
    effect = effect_text(verdict.interval) if verdict.verdict in TESTED else ""
    number = (
        f": {with_unit(effect, verdict.unit if len(verdict.sides) == 1 else '')}" if effect else ""
    )
    return f"**{word}**{number}".replace("n = ", "n\u00a0=\u00a0")


def remarks(verdict: Verdict) -> list[str]:
    """Return the remarks on a verdict's strength: that it is fragile, or on the edge."""
    on_edge = verdict.on_edge and verdict.verdict in TESTED
    return [*filter(None, [verdict.fragile]), *([ON_EDGE] if on_edge else [])]


def effect_text(effect: Interval) -> str:
    """Return an effect as "2.31 [2.20, 2.44], n = 3"; empty without one.

    An end that the load left open is given as "at least" or "at most".
    """
    low, high = effect.low, effect.high
    if effect.estimate is None:
        return ""
    if low is None:
        text = short(effect.estimate)
    elif (low, high) == (-INFINITE, INFINITE):
        text = "no limit reached"
    elif high == INFINITE:
        text = f"at least {short(low)}"
    elif low == -INFINITE:
        text = f"at most {short(high)}"
    else:
        # A narrow interval needs more digits: "1.01 [1.01, 1.01]" would hide that it excludes 1.
        digits = next((n for n in (3, 4, 5) if short(low, n) != short(high, n)), 3)
        text = f"{short(effect.estimate, digits)} [{short(low, digits)}, {short(high, digits)}]"
    return f"{text}, n = {effect.trials}"


def effect_phrase(verdict: Verdict) -> str:
    """Return the comparison of a verdict: "reply rate (req/s), A over B: 2.3 [2, 3], n = 3".

    A single value has its unit instead; empty if nothing was compared.
    """
    effect, sides = effect_text(verdict.interval), verdict.sides
    if not effect or not sides:
        return effect
    quantity, unit = verdict.quantity, verdict.unit
    over = " over ".join(side.what or "all servers" for side in sides)
    if verdict.as_claimed:
        return f"trials as claimed ({', '.join(filter(None, [quantity, over]))}): {effect}"
    if len(sides) == 1:
        return f"{quantity}, {sides[0].what}: {with_unit(effect, unit)}"
    named = f"{quantity}{f' ({unit})' if unit else ''}" if quantity else ""
    return f"{', '.join(filter(None, [named, over]))}: {effect}"


def with_unit(effect: str, unit: str) -> str:
    """Return the text of an effect with the unit after its value."""
    value, comma, n = effect.partition(", n")
    return f"{value}{f' {unit}' if unit else ''}{comma}{n}"


def short(value: float, digits: int = 3) -> str:
    """Return a number to so many significant digits, whole from a thousand on."""
    return phrases.number(value) if abs(value) >= 1000 else f"{value:.{digits}g}"


OF_THE_TIME, OLDEST, NOW = "then, of the time", "then, oldest that runs", "now"
AGES = (OF_THE_TIME, OLDEST, NOW)
"""The releases of a verdict; OF_THE_TIME: all are within `releases.WITHIN_YEARS`."""
ROLES = ("result", "explanation", "objection", "reply")


def opposing(claims: Sequence[Claim]) -> list[tuple[str, str]]:
    """Return the pairs of claims on one comparison, now, of which at most one can hold."""
    alone = [claim for claim in claims if len(claim.now) == 1]
    return [
        (first.id, second.id)
        for first, second in combinations(alone, 2)
        if _compared(first) == _compared(second) and _disjoint(first.now[0], second.now[0])
    ]


def _compared(claim: Claim) -> tuple:
    """Return what a claim compares, without what it claims of it."""
    one = claim.now[0]
    return claim.experiment, one.statistic, one.a, one.b


def _disjoint(first: Comparison, second: Comparison) -> bool:
    return first.high <= second.low or second.high <= first.low


def questions(entries: Sequence[Entry], age: str) -> list[tuple[Entry, Verdict]]:
    """Return the claims with their verdicts on releases of an age; one of each opposing pair.

    The decided claim of a pair counts, or else the first.
    """
    made = [(entry, entry.now if age == NOW else entry.then) for entry in entries]
    if age != NOW:
        made = [one for one in made if one[1].of_the_time == (age == OF_THE_TIME)]
    by_claim = {entry.claim: (entry, verdict) for entry, verdict in made}
    for first, second in opposing(published.claims()):
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


POST_HOLDS, POST_FAILS, POST_IN_PART = "holds", "does not hold", "holds in part"
POST_UNTOLD = "could not be told"


def posts(entries: Sequence[Entry]) -> pl.DataFrame:
    """Return for each source how many of its results hold on today's releases.

    Columns: source, results, hold, fail, untold and word, one of POST_…. Fragile verdicts count as
    untold; two opposing claims are one.
    """
    rows = []
    for source in dict.fromkeys(entry.source for entry in entries):
        told = [
            verdict.verdict if not verdict.fragile else ""
            for entry, verdict in questions(entries, NOW)
            if (entry.source, entry.role) == (source, "result")
        ]
        hold, fail = told.count(REPLICATED), told.count(NOT)
        word = POST_UNTOLD if 2 * (hold + fail) < len(told) else _of_post(hold, fail)
        rows.append((source, len(told), hold, fail, len(told) - hold - fail, word))
    names = {"source": pl.String, **dict.fromkeys(("results", "hold", "fail", "untold"), pl.Int64)}
    return pl.DataFrame(rows, schema=names | {"word": pl.String}, orient="row")


def _of_post(hold: int, fail: int) -> str:
    if hold >= 2 * fail:
        return POST_HOLDS
    return POST_FAILS if fail >= 2 * hold else POST_IN_PART


def post_sentence(row: dict) -> str:
    """Return a row of `posts` as "**holds in part**: of 9 results 4 hold, 3 do not, 2 …"."""
    counts = f"of {row['results']} results, {row['hold']} hold and {row['fail']} do not"
    return f"**{row['word']}**; {counts}, {row['untold']} could not be told"
