"""Verdicts of two datasets on the same claims: which of them survive a change of machine.

In: two ledgers of `claims.ledger`. Out: a row for each verdict, and for each ratio that both
measured, and what to say of them.
"""

import math

import polars as pl

from deathmatch.analysis.judging import NOT, NOT_RUN, REPLICATED
from deathmatch.analysis.verdict_words import whens

OPPOSED, ONE, ALIKE, NEITHER = "opposed", "one decides", "alike", "neither decides"
KINDS = [OPPOSED, ONE, ALIKE, NEITHER]
"""How two verdicts stand to each other, first what a reader looks for first."""

DECIDED = frozenset({REPLICATED, NOT})
"""The verdicts that decide a claim."""

_SCHEMA = dict.fromkeys(("claim", "says", "when", "verdict", "other", "kind"), pl.String)
_EFFECT = {"effect": pl.Float64, "low": pl.Float64, "high": pl.Float64, "trials": pl.Int64}
EFFECTS = (
    dict.fromkeys(("claim", "says", "when", "kind"), pl.String)
    | _EFFECT
    | {f"other_{name}": kind for name, kind in _EFFECT.items()}
    | {"factor": pl.Float64, "apart": pl.Boolean}
)


def verdicts(ledger: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    """Return the verdicts of both ledgers: claim, says, when, verdict, other, kind (of KINDS).

    Of claims that either could run; a claim whose then and now are one has one row. Sorted by kind.
    """
    rows = []
    for row in ledger.join(other, on="claim", suffix="_other").iter_rows(named=True):
        same = row["same"] and row["same_other"]
        for when in whens(same):
            ours, theirs = row[when], row[f"{when}_other"]
            if {ours, theirs} != {NOT_RUN}:
                told = "then and now" if same else when
                rows.append([row["claim"], row["says"], told, ours, theirs, _kind(ours, theirs)])
    frame = pl.DataFrame(rows, _SCHEMA, orient="row")
    return frame.sort(pl.col("kind").cast(pl.Enum(KINDS)), maintain_order=True)


def _kind(ours: str, theirs: str) -> str:
    if {ours, theirs} <= DECIDED:
        return ALIKE if ours == theirs else OPPOSED
    return ONE if {ours, theirs} & DECIDED else NEITHER


def effects(ledger: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    """Return the ratios that both ledgers' verdicts compare, with the columns of EFFECTS.

    Of verdicts whose two sides are one and the same in both; an interval that a load left open is
    none. `factor` is the greater ratio over the smaller one; `apart` says that their intervals have
    nothing in common. Sorted by factor, the greatest first.
    """
    joined = ledger.join(other, on="claim", suffix="_other")
    by_claim = {row["claim"]: row for row in joined.to_dicts()}
    rows = []
    for found in verdicts(ledger, other).iter_rows(named=True):
        when = "now" if found["when"] == "then and now" else found["when"]
        row = by_claim[found["claim"]]
        sides = [
            [side["what"] for side in row[f"{when}_sides{end}"] or []] for end in ("", "_other")
        ]
        ours = {name: row[f"{when}_{name}"] for name in _EFFECT}
        theirs = {f"other_{name}": row[f"{when}_{name}_other"] for name in _EFFECT}
        told = ours | theirs
        if len(sides[0]) != 2 or sides[0] != sides[1] or not all(map(_told, told.values())):
            continue
        ratios = told["effect"], told["other_effect"]
        apart = told["low"] > told["other_high"] or told["high"] < told["other_low"]
        rows.append(
            {name: found[name] for name in ("claim", "says", "when", "kind")}
            | told
            | {"factor": max(ratios) / min(ratios), "apart": apart}
        )
    return pl.DataFrame(rows, EFFECTS).sort("factor", descending=True, maintain_order=True)


def _told(value: float | None) -> bool:
    """Return whether a logarithmic axis has a place for it."""
    return value is not None and math.isfinite(value) and value > 0
