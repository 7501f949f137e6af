"""Connections that were opened and closed before a rate, as columns of `points`.

`measure.churn` opens them; see there for how long.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from deathmatch.load.generator import Fields

# The rate that the rounds came to is the mean of so many rounds.
WINDOW_ROUNDS = 5
# Two windows are compared before rounds count as steady.
LEAST_ROUNDS = 2 * WINDOW_ROUNDS


def columns(record: Mapping[str, Any]) -> Fields:
    """Return the columns of a point's `warm_up` (`plan.record.RecordedChurn`), or of {}."""
    rates = record.get("rates_cps") or []
    return {
        "warm_up_rounds": len(rates) if record else None,
        "warm_up_first_cps": next(iter(rates), None),
        "warm_up_last_cps": last_cps(rates),
        "warm_up_steady": record.get("steady"),
    }


def last_cps(rates_cps: Sequence[float]) -> float | None:
    """Return the mean of the last WINDOW_ROUNDS rates in connections per second.

    Of fewer rounds, it is the mean of all; of none, None.
    """
    return fmean(rates_cps[-WINDOW_ROUNDS:]) if rates_cps else None
