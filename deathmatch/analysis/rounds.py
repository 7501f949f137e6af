"""Rounds: repetitions of all variants, one after another, between which a machine's speed drifts.

In: points or values of trials, with the round as `n`. Out: what may be compared, and how much the
rounds of an experiment differ.
"""

import polars as pl

from deathmatch.analysis.by_trial import values
from deathmatch.quantities.definitions import CPU_PER_REPLY
from deathmatch.quantities.quantity import RATE

FIRST, LAST = 1, 3
"""The rounds whose drift is shown: every variant of a dataset has three or more."""
DRIFT = {"variants": pl.Int64, "higher": pl.Int64, "lower": pl.Int64, "ratio": pl.Float64}
_VARIANT = ["server", "variant"]


def drift(points: pl.DataFrame) -> pl.DataFrame:
    """Return a row with DRIFT: CPU per reply in round LAST over that in round FIRST.

    `points` are those that count. Of how many variants it is higher or lower, and the median of the
    ratio over variants, each at the rates that it has in both rounds.
    """
    both = points.filter(pl.col("n").is_in([FIRST, LAST]))
    whole = pl.col("n").n_unique().over([*_VARIANT, RATE]) == 2
    cost = values(both.filter(whole), CPU_PER_REPLY, _VARIANT)
    sides = [cost.filter(n=n).drop("n") for n in (LAST, FIRST)]
    last, first = (pl.col(CPU_PER_REPLY.name), pl.col(f"{CPU_PER_REPLY.name}_first"))
    ratios = sides[0].join(sides[1], on=_VARIANT, suffix="_first").select(ratio=last / first)
    return ratios.select(
        variants=pl.len(), higher=(pl.col("ratio") > 1).sum(), lower=(pl.col("ratio") < 1).sum(),
        ratio=pl.col("ratio").median(),
    ).cast(DRIFT)  # fmt: skip


def drifts(points: dict[str, pl.DataFrame]) -> pl.DataFrame:
    """Return `drift` of each experiment: experiment, DRIFT at its lowest rate and at all rates.

    `points` are those that count, by experiment; the columns at all rates begin with "all_". A
    closed loop is not a rate. Experiments without two rounds have no row.
    """
    rows = []
    for name, frame in points.items():
        offered = frame.filter(pl.col(RATE) > 0)
        lowest = offered.filter(pl.col(RATE) == pl.col(RATE).min())
        at_lowest, at_all = (drift(part).row(0, named=True) for part in (lowest, offered))
        if at_all["variants"]:
            rate = {"experiment": name, RATE: offered[RATE].min()}
            rows.append(rate | at_lowest | {f"all_{key}": at_all[key] for key in at_all})
    kinds = {f"all_{name}": kind for name, kind in DRIFT.items()}
    return pl.DataFrame(rows, {"experiment": pl.String, RATE: pl.Int64} | DRIFT | kinds)
