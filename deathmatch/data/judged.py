"""An experiment's points with what needs all of its tables: laws, and whose limit they show."""

from collections.abc import Mapping

import polars as pl

from deathmatch.data import laws, limits


def points(experiment: str, frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Return the points with the columns of `limits` and, last, of `laws`, from tables by name."""
    given = laws.evidence(experiment, frames)
    limited = limits.marked(given).drop(laws.MARKS, strict=False)
    return laws.marked(limited, laws.judgements(given))
