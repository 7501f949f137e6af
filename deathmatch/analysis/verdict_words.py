"""Verdicts in words: what a row of the ledger says, for cells and sentences."""

from deathmatch.analysis import phrases
from deathmatch.analysis.judging import INFINITE, NOT, OPEN, REPLICATED

WHEN = ("then", "now")


def whens(same: bool) -> tuple[str, ...]:
    """Return which verdicts a claim has: both of WHEN, or only now where they are the same."""
    return WHEN[1:] if same else WHEN


def verdicts_phrase(row: dict) -> str:
    """Return a ledger row's verdicts, each with what it compared in brackets; one where alike."""
    parts = []
    for when in whens(row["same"]):
        found = effect_phrase(row, when)
        named = row[when] if row["same"] else f"{when} {row[when]}"
        parts.append(named + (f" ({found})" if found else ""))
    return "; ".join(parts)


def verdict_text(row: dict, when: str) -> str:
    """Return one verdict of a ledger row for a cell, in Markdown, with what it compared.

    Numbers only where it was decided; "the same" for now where one variant stands for both.
    """
    if when == "now" and row["same"]:
        return "the same"
    decided = row[when] in (REPLICATED, NOT, OPEN)
    found = f": {effect_phrase(row, when)}" if decided else ""
    sized = row[when] == NOT and row[f"{when}_direction"] == REPLICATED
    text = f"**{row[when]}**{found}{'; its direction is replicated' if sized else ''}"
    return text.replace("n = ", "n\u00a0=\u00a0")


def effect_text(row: dict, when: str = "") -> str:
    """Return an effect as "2.31 [2.20, 2.44], n = 3"; empty without one.

    Of a ledger's row, `when` says which verdict's; without it the keys are effect, low, high and
    trials. An end of the interval that the load left open is given as "at least" or "at most".
    """
    prefix = f"{when}_" if when else ""
    effect, low, high, trials = (row[prefix + name] for name in ("effect", "low", "high", "trials"))
    if effect is None:
        return ""
    if low is None:
        text = _short(effect)
    elif (low, high) == (-INFINITE, INFINITE):
        text = "no limit reached"
    elif high == INFINITE:
        text = f"at least {_short(low)}"
    elif low == -INFINITE:
        text = f"at most {_short(high)}"
    else:
        text = f"{_short(effect)} [{_short(low)}, {_short(high)}]"
    return f"{text}, n = {trials}"


def effect_phrase(row: dict, when: str) -> str:
    """Return what a verdict compared: "reply rate (req/s), A over B: 2.3 [2, 3], n = 3".

    A value alone carries its unit instead; empty where nothing was compared.
    """
    found, sides = effect_text(row, when), row[f"{when}_sides"]
    if not found or not sides:
        return found
    quantity, unit = row[f"{when}_quantity"], row[f"{when}_unit"]
    if len(sides) == 1:
        value, comma, n = found.partition(", n")
        return f"{quantity}, {sides[0]['what']}: {value}{f' {unit}' if unit else ''}{comma}{n}"
    named = f"{quantity}{f' ({unit})' if unit else ''}" if quantity else ""
    over = " over ".join(side["what"] or "all servers" for side in sides[:2])
    return f"{', '.join(filter(None, [named, over]))}: {found}"


def _short(value: float) -> str:
    return phrases.number(value) if abs(value) >= 1000 else f"{value:.3g}"
