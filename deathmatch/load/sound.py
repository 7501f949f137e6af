"""Checks that every report must pass: values are numbers, not negative, and fit a table."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from deathmatch.errors import Truncated
from deathmatch.load.generator import Fields

MOST = 2**63 - 1
"""The greatest number of a column of whole numbers."""


def checked(fields: Fields, columns: Mapping[str, Any]) -> Fields:
    """Return the fields, of which each fits its column: its type, finite, from 0 to MOST, or None.

    Raises Truncated for the first that does not: who printed it was no load generator of ours.
    """
    for name, value in fields.items():
        kind = columns.get(name)
        if value is None or kind in (None, pl.String):
            continue
        wanted = int if kind == pl.Int64 else int | float
        if isinstance(value, bool) or not isinstance(value, wanted) or not _fits(value):
            raise Truncated(f"{name} cannot be {str(value)[:40]}")
    return fields


def equal(what: str, value: int, other: str, other_value: int) -> None:
    """Raise Truncated if two numbers of one report that must be the same are not."""
    if value != other_value:
        raise Truncated(f"{what} are {value}, and {other} {other_value}")


def at_least(what: str, value: int, other: str, other_value: int) -> None:
    """Raise Truncated if one number of a report is less than another that it includes."""
    if value < other_value:
        raise Truncated(f"{what} are {value}, fewer than {other}, {other_value}")


def _fits(value: int | float) -> bool:
    # False of a number that is none.
    return 0 <= value <= MOST
