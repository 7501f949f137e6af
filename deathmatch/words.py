"""Computed statistics as phrases for prose, so that every number there has its n and interval."""

from deathmatch.stats import CONFIDENCE

Statistic = dict[str, float | int | None]

NOT_MEASURED = "not measured in this dataset"


def number(value: float | None, digits: int = 0) -> str:
    """Return a number with thin spaces between thousands: 12 345.6; of none, NOT_MEASURED."""
    return NOT_MEASURED if value is None else f"{value:,.{digits}f}".replace(",", "\u202f")


def interval(found: Statistic, unit: str = "", digits: int = 0) -> str:
    """Return "7 440 req/s (95 % interval 7 200 to 7 600, n = 3)" for `stats.interval`'s result.

    Without an interval, "(n = 1)"; without any trial, NOT_MEASURED.
    """
    if not found["trials"]:
        return NOT_MEASURED
    space = "\u202f" if unit == "%" else " "
    middle = f"{number(found['median'], digits)}{space if unit else ''}{unit}"
    if found["low"] is None:
        return f"{middle} (n = {found['trials']})"
    low, high = number(found["low"], digits), number(found["high"], digits)
    level = f"{100 * CONFIDENCE:.0f}\u202f%"
    return f"{middle} ({level} interval {low} to {high}, n = {found['trials']})"


def ratio(found: Statistic) -> str:
    """Return "2.31 times (95 % interval 2.20 to 2.44, n = 3)"."""
    return interval(found, "times", 2)


def direction(found: Statistic, higher: str, lower: str, same: str) -> str:
    """Return `higher` or `lower` if the interval of a ratio excludes 1, else `same`.

    A ratio without an interval decides nothing, so it is `same`.
    """
    if not found["trials"]:
        return NOT_MEASURED
    if found["low"] is not None and found["low"] > 1:
        return higher
    if found["high"] is not None and found["high"] < 1:
        return lower
    return same
