"""What would decide the claims that are not: the conditions to reach, the trials to measure."""

from collections.abc import Sequence

import polars as pl

from deathmatch.analysis import required_trials, trial_tests
from deathmatch.analysis.judging import OPEN, UNREACHED
from deathmatch.analysis.ledger import Entry
from deathmatch.analysis.verdict_words import effect_text

# Beyond this, the factor between a ratio and its threshold says nothing.
NO_FACTOR = 1000


def unmet_needs(entries: Sequence[Entry]) -> pl.DataFrame:
    """Return what claims whose condition was not reached needed: source, says, needed, there."""
    unmet = [
        {"source": entry.source, "says": entry.says, "needed": need.needed, "there": need.there}
        for entry in entries
        for verdict in entry.verdicts.values()
        if verdict.verdict == UNREACHED
        for need in verdict.needs
        if not need.met
    ]
    schema = dict.fromkeys(("source", "says", "needed", "there"), pl.String)
    return pl.DataFrame(unmet, schema=schema).unique(maintain_order=True)


def open_rows(entries: Sequence[Entry]) -> pl.DataFrame:
    """Return what inconclusive verdicts would take, the cheapest first.

    Columns: source, says, when, effect (with its interval), detectable (the factor that its trials
    could have detected; null without a spread, or beyond NO_FACTOR), needed (trials in all, in
    words), needed_min (minutes of further trials; null where there are too many).
    """
    rows = []
    for entry in entries:
        for when, verdict in entry.verdicts.items():
            if verdict.verdict != OPEN:
                continue
            required = verdict.required
            trials, seconds = required.needed_trials, required.needed_s
            factor = required.detectable
            rows.append({
                "source": entry.source,
                "says": entry.says,
                "when": when,
                "effect": effect_text(verdict.interval),
                "detectable": factor if (factor or NO_FACTOR) < NO_FACTOR else None,
                "needed": f"more than {trial_tests.MOST_TRIALS}" if trials is None else f"{trials}",
                "needed_min": None if seconds is None else required_trials.minutes(seconds),
            })  # fmt: skip
    text = dict.fromkeys(("source", "says", "when", "effect"), pl.String)
    kinds = {"detectable": pl.Float64, "needed": pl.String, "needed_min": pl.Int64}
    return pl.DataFrame(rows, schema=text | kinds).sort(
        "needed_min", "detectable", nulls_last=True, maintain_order=True
    )
