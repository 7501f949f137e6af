"""Which rules are those of the moment when a dataset's first trial began, and which changed since.

In: the dataset's record of its rules, and data/published/rule_changes.csv, which
`bench/rule_changes.py` writes from git's history. Out: a set of claims, and a frame.
"""

import polars as pl

from deathmatch.data import rule_record
from deathmatch.plan.root import ROOT

UNREADABLE = "unreadable today"
"""In place of a verdict on a rule that today's code cannot decide."""
FILE = ROOT / "data" / "published" / "rule_changes.csv"
COLUMNS = dict.fromkeys(
    ("dataset", "claim", "date", "commit", "then_before", "then_after", "now_before", "now_after",
     "why"),
    pl.String,
)  # fmt: skip


def frozen(dataset: str) -> dict[str, bool] | None:
    """Return for each claim of today whether its rule is that of the dataset's first trial.

    So must be what stands for its servers, if the record has it. None of a dataset that has no
    record of its rules.
    """
    record = rule_record.read(dataset)
    if record is None:
        return None
    text = (ROOT / rule_record.CLAIMS).read_text()
    today = rule_record.both_hashes(text, record)
    return {claim: rule == record.recorded(claim) for claim, rule in today.items()}


def word(known: dict[str, bool] | None, claim: str) -> str:
    """Return whether a claim's rule is that of the first trial, by `frozen`, for a cell."""
    if known is None:
        return "not recorded"
    return "as then" if known.get(claim) else "changed"


def turned(changes: pl.DataFrame) -> pl.DataFrame:
    """Return the changes that changed a verdict, of rules that today's code can decide."""
    other = (pl.col("then_before") != pl.col("then_after")) | (
        pl.col("now_before") != pl.col("now_after")
    )
    known = ~pl.any_horizontal(pl.col("then_before", "then_after") == UNREADABLE)
    both = (pl.col("then_before") != "") & (pl.col("then_after") != "")
    return changes.filter(other, known, both)


def changes(dataset: str) -> pl.DataFrame:
    """Return the changes of rules after the dataset's first trial, with COLUMNS, oldest first."""
    return pl.read_csv(FILE, schema=COLUMNS).filter(dataset=dataset).fill_null("")
