"""Verdicts in words and in numbers.

In: entries of a ledger. Out: what an entry says, for cells and sentences; how many claims have
which verdict, by the age of what ran and by the role of the claim. Two claims that oppose each
other are one question, and count once.
"""

from collections.abc import Sequence
from itertools import combinations

import polars as pl

from deathmatch.analysis import phrases, published
from deathmatch.analysis.comparison import INFINITE, Comparison
from deathmatch.analysis.judging import DECIDED, TESTED, VERDICTS
from deathmatch.analysis.ledger import BOTH, Entry, Verdict
from deathmatch.analysis.published import Claim
from deathmatch.analysis.stats import Interval

ON_EDGE = "the threshold is nearer than one trial repeats another"


def word(verdict: Verdict) -> str:
    """Return a verdict in a word, with what it does not survive: "replicated, fragile (Holm)"."""
    return ", ".join(filter(None, [verdict.verdict, verdict.fragile]))


def verdicts_phrase(entry: Entry) -> str:
    """Return an entry's verdicts, each with what it compared in brackets; one where alike."""
    parts = []
    for when, verdict in entry.verdicts.items():
        named = word(verdict) if when == BOTH else f"{when} {word(verdict)}"
        effect = effect_phrase(verdict)
        parts.append(named + (f" ({effect})" if effect else ""))
    return "; ".join(parts)


def both_words(entry: Entry) -> str:
    """Return an entry's verdicts in words alone, then and now; one where they are alike."""
    words = {when: word(verdict) for when, verdict in entry.verdicts.items()}
    if len(set(words.values())) == 1:
        return next(iter(words.values()))
    return "; ".join(f"{when} {word}" for when, word in words.items())


def verdict_text(verdict: Verdict) -> str:
    """Return one verdict for a cell, in Markdown; with what it compared only where decided."""
    effect = f": {effect_phrase(verdict)}" if verdict.verdict in TESTED else ""
    text = "; ".join(filter(None, [f"**{verdict.verdict}**{effect}", *remarks(verdict)]))
    return text.replace("n = ", "n\u00a0=\u00a0")


def remarks(verdict: Verdict) -> list[str]:
    """Return what a reader must know of a verdict's strength: it is fragile, or on the edge."""
    on_edge = verdict.on_edge and verdict.verdict in TESTED
    return [*filter(None, [verdict.fragile]), *([ON_EDGE] if on_edge else [])]


def direction_text(entry: Entry) -> str:
    """Return the verdicts on the direction alone, of a rule that has a size; empty without."""
    known = {when: verdict.direction for when, verdict in entry.verdicts.items()}
    if len(set(known.values())) == 1:
        return next(iter(known.values())) or ""
    return "; ".join(f"{when}: {direction}" for when, direction in known.items() if direction)


def effect_text(effect: Interval) -> str:
    """Return an effect as "2.31 [2.20, 2.44], n = 3"; empty without one.

    An end of the interval that the load left open is given as "at least" or "at most".
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
    """Return what a verdict compared: "reply rate (req/s), A over B: 2.3 [2, 3], n = 3".

    A value alone carries its unit instead; empty where nothing was compared.
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
"""On what a verdict stands: OF_THE_TIME where all releases are within `ages.WITHIN_YEARS`."""
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
    """Return the claims with their verdicts on what is of an age: of a pair that opposes, one.

    That is the one which is decided, or else the first.
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
