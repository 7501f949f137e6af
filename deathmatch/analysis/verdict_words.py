"""Verdicts in words: what an entry of the ledger says, for cells and sentences."""

from deathmatch.analysis import phrases
from deathmatch.analysis.interval import Interval
from deathmatch.analysis.judging import INFINITE, TESTED
from deathmatch.analysis.ledger import BOTH, Entry, Verdict

ON_EDGE = "the threshold is nearer than one trial repeats another"


def verdicts_phrase(entry: Entry) -> str:
    """Return an entry's verdicts, each with what it compared in brackets; one where alike."""
    parts = []
    for when, verdict in entry.verdicts.items():
        named = verdict.verdict if when == BOTH else f"{when} {verdict.verdict}"
        effect = effect_phrase(verdict)
        parts.append(named + (f" ({effect})" if effect else ""))
    return "; ".join(parts)


def both_words(entry: Entry) -> str:
    """Return an entry's verdicts in words alone, then and now; one where they are alike."""
    words = {when: verdict.verdict for when, verdict in entry.verdicts.items()}
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

    A value alone carries its unit instead; empty where nothing was compared. Of more than two sides
    their number is said: which two decide may differ from trial to trial.
    """
    effect, sides = effect_text(verdict.interval), verdict.sides
    if not effect or not sides:
        return effect
    quantity, unit = verdict.quantity, verdict.unit
    over = " over ".join(side.what or "all servers" for side in sides)
    if len(sides) > 2:
        over = f"of {len(sides)} compared"
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
