"""Verdicts of two datasets on the same claims: which of them survive a change of machine.

In: two ledgers of `claims.ledger`. Out: a row for each verdict, and for each ratio that both
measured, and what to say of them.
"""

import math
from collections.abc import Sequence

import polars as pl

from deathmatch.analysis.interval import Interval
from deathmatch.analysis.judging import DECIDED, NOT_RUN
from deathmatch.analysis.ledger import BOTH, Entry, Verdict

OPPOSED, ONE, ALIKE, NEITHER = "opposed", "one decides", "alike", "neither decides"
KINDS = [OPPOSED, ONE, ALIKE, NEITHER]
"""How two verdicts stand to each other, first what a reader looks for first."""

_SCHEMA = dict.fromkeys(("claim", "says", "when", "verdict", "other", "kind"), pl.String)
_EFFECT = {"effect": pl.Float64, "low": pl.Float64, "high": pl.Float64, "trials": pl.Int64}
EFFECTS = (
    dict.fromkeys(("claim", "says", "when", "kind"), pl.String)
    | _EFFECT
    | {f"other_{name}": kind for name, kind in _EFFECT.items()}
    | {"factor": pl.Float64, "apart": pl.Boolean}
)


def verdicts(ledger: Sequence[Entry], other: Sequence[Entry]) -> pl.DataFrame:
    """Return the verdicts of both ledgers: claim, says, when, verdict, other, kind (of KINDS).

    Of claims that either could run; a claim whose then and now are one has one row. Sorted by kind.
    """
    rows = [
        (entry.claim, entry.says, when, ours.verdict, theirs.verdict, _kind(ours, theirs))
        for entry, when, ours, theirs in _pairs(ledger, other)
    ]
    return _by_kind(pl.DataFrame(rows, _SCHEMA, orient="row"))


def _pairs(
    ledger: Sequence[Entry], other: Sequence[Entry]
) -> list[tuple[Entry, str, Verdict, Verdict]]:
    """Return the verdicts of claims that either ledger could run, side by side."""
    theirs = {entry.claim: entry for entry in other}
    pairs = []
    for entry in ledger:
        if entry.claim not in theirs:
            continue
        now = (entry.now, theirs[entry.claim].now)
        if entry.same and theirs[entry.claim].same:
            both = {BOTH: now}
        else:
            both = {"then": (entry.then, theirs[entry.claim].then), "now": now}
        pairs += [
            (entry, when, *sides)
            for when, sides in both.items()
            if {side.verdict for side in sides} != {NOT_RUN}
        ]
    return pairs


def _by_kind(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.sort(pl.col("kind").cast(pl.Enum(KINDS)), maintain_order=True)


def _kind(ours: Verdict, theirs: Verdict) -> str:
    both = {ours.verdict, theirs.verdict}
    if both <= DECIDED:
        return ALIKE if len(both) == 1 else OPPOSED
    return ONE if both & DECIDED else NEITHER


def effects(ledger: Sequence[Entry], other: Sequence[Entry]) -> pl.DataFrame:
    """Return the ratios that both ledgers' verdicts compare, with the columns of EFFECTS.

    Of verdicts whose two sides are one and the same in both; an interval that a load left open is
    none. `factor` is the greater ratio over the smaller one; `apart` says that their intervals have
    nothing in common. Sorted by factor, the greatest first.
    """
    rows = []
    for entry, when, ours, theirs in _pairs(ledger, other):
        sides = [[side.what for side in verdict.sides] for verdict in (ours, theirs)]
        a, b = ours.interval, theirs.interval
        shares = ours.as_claimed or theirs.as_claimed
        alike = len(sides[0]) == 2 and sides[0] == sides[1] and not shares
        if not (alike and _bounded(a) and _bounded(b)):
            continue
        rows.append((
            *(entry.claim, entry.says, when, _kind(ours, theirs)),
            *(a.estimate, a.low, a.high, a.trials),
            *(b.estimate, b.low, b.high, b.trials),
            max(a.estimate, b.estimate) / min(a.estimate, b.estimate),
            a.low > b.high or a.high < b.low,
        ))  # fmt: skip
    frame = _by_kind(pl.DataFrame(rows, EFFECTS, orient="row"))
    return frame.sort("factor", descending=True, maintain_order=True)


def _bounded(interval: Interval) -> bool:
    """Return whether a logarithmic axis has a place for an interval."""
    ends = (interval.estimate, interval.low, interval.high)
    return all(end is not None and math.isfinite(end) and end > 0 for end in ends)
