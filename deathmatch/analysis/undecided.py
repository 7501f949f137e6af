"""What would decide the claims that are not: the conditions to reach, the trials to measure."""

import polars as pl

from deathmatch.analysis import required_trials, sequential
from deathmatch.analysis.judging import OPEN, UNREACHED
from deathmatch.analysis.verdict_words import effect_text, whens

# What nobody would call a factor between a ratio and its threshold.
NO_FACTOR = 1000


def unmet_needs(rows: pl.DataFrame) -> pl.DataFrame:
    """Return what claims whose condition was not reached needed: name, says, needed, there.

    `rows` are of the ledger, with `name`, that of the source.
    """
    unmet = [
        {"name": row["name"], "says": row["says"], "needed": need["needed"], "there": need["there"]}
        for row in rows.to_dicts()
        for when in whens(row["same"])
        if row[when] == UNREACHED
        for need in row[f"{when}_needs"]
        if not need["met"]
    ]
    schema = dict.fromkeys(("name", "says", "needed", "there"), pl.String)
    return pl.DataFrame(unmet, schema=schema).unique(maintain_order=True)


def open_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Return what inconclusive verdicts would take, the cheapest first.

    Columns: name, says, when, effect (with its interval), detectable (the factor that its trials
    could have detected; null without a spread, or beyond NO_FACTOR), needed (trials in all, in
    words), needed_min (minutes of further trials; null where there are too many). `rows` are of
    the ledger, with `name`, that of the source.
    """
    found = []
    for row in rows.to_dicts():
        for when in whens(row["same"]):
            if row[when] != OPEN:
                continue
            trials, seconds = row[f"{when}_needed_trials"], row[f"{when}_needed_s"]
            detectable = row[f"{when}_detectable"]
            found.append({
                "name": row["name"],
                "says": row["says"],
                "when": "then and now" if row["same"] else when,
                "effect": effect_text(row, when),
                "detectable": detectable if (detectable or NO_FACTOR) < NO_FACTOR else None,
                "needed": f"more than {sequential.LOOKS[-1]}" if trials is None else f"{trials}",
                "needed_min": None if seconds is None else required_trials.minutes(seconds),
            })  # fmt: skip
    text = dict.fromkeys(("name", "says", "when", "effect"), pl.String)
    kinds = {"detectable": pl.Float64, "needed": pl.String, "needed_min": pl.Int64}
    return pl.DataFrame(found, schema=text | kinds).sort(
        "needed_min", "detectable", nulls_last=True, maintain_order=True
    )
