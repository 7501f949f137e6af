"""Verdicts of two datasets on the same claims: which of them survive a change of machine.

In: two ledgers of `claims.ledger`. Out: a row for each verdict, and what to say of them.
"""

import polars as pl

from deathmatch.analysis import phrases
from deathmatch.analysis.claims import NOT, NOT_RUN, REPLICATED, WHEN

OPPOSED, ONE, ALIKE, NEITHER = "opposed", "one decides", "alike", "neither decides"
KINDS = [OPPOSED, ONE, ALIKE, NEITHER]
"""How two verdicts stand to each other, first what a reader looks for first."""

_DECIDED = {REPLICATED, NOT}
_SCHEMA = dict.fromkeys(("claim", "says", "when", "verdict", "other", "kind"), pl.String)


def verdicts(ledger: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    """Return the verdicts of both ledgers: claim, says, when, verdict, other, kind (of KINDS).

    Of claims that either could run; a claim whose then and now are one has one row. Sorted by kind.
    """
    rows = []
    for row in ledger.join(other, on="claim", suffix="_other").iter_rows(named=True):
        same = row["same"] and row["same_other"]
        for when in ("now",) if same else WHEN:
            ours, theirs = row[when], row[f"{when}_other"]
            if {ours, theirs} != {NOT_RUN}:
                told = "then and now" if same else when
                rows.append([row["claim"], row["says"], told, ours, theirs, _kind(ours, theirs)])
    frame = pl.DataFrame(rows, _SCHEMA, orient="row")
    return frame.sort(pl.col("kind").cast(pl.Enum(KINDS)), maintain_order=True)


def _kind(ours: str, theirs: str) -> str:
    if {ours, theirs} <= _DECIDED:
        return ALIKE if ours == theirs else OPPOSED
    return ONE if {ours, theirs} & _DECIDED else NEITHER


def phrase(found: pl.DataFrame, dataset: str, other: str) -> str:
    """Return in sentences how many verdicts both datasets decide, how many alike, which not."""
    by_kind = {kind: found.filter(kind=kind) for kind in KINDS}
    both = len(by_kind[ALIKE]) + len(by_kind[OPPOSED])
    alone = by_kind[ONE]["verdict"].is_in(_DECIDED).sum()
    told = [
        f"The claims have {len(found)} verdicts, then and now, of which both datasets decide",
        f"{both}: {len(by_kind[ALIKE])} alike and {len(by_kind[OPPOSED])} opposed.",
        f"Only `{dataset}` decides {alone} more, only `{other}` {len(by_kind[ONE]) - alone}.",
    ]
    if len(by_kind[OPPOSED]):
        named = [
            f"“{row['says'].rstrip('.')}” ({row['when']})"
            for row in by_kind[OPPOSED].iter_rows(named=True)
        ]
        told.append(f"Opposed: {phrases.enumeration(named)}.")
    return " ".join(told)
