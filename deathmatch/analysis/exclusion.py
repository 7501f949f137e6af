"""What LAW-STEADY changes: the claims that it touches, with all trials and with those it keeps.

In: a dataset's tables. Out: a frame. Trials that are left out by their course are left out by their
outcome, so that both must be seen.
"""

import polars as pl

from deathmatch.analysis import published, releases, rules, selecting
from deathmatch.analysis.judging import Judgement
from deathmatch.data import laws
from deathmatch.quantities.definitions import QUANTITIES
from deathmatch.quantities.quantity import Points

_SIDE = {"trials": pl.Int64, "median": pl.Float64, "verdict": pl.String}
COLUMNS = {"claim": pl.String} | _SIDE | {f"{name}_all": kind for name, kind in _SIDE.items()}


def claims(dataset: str) -> pl.DataFrame:
    """Return the claims, on today's releases, whose trials or medians LAW-STEADY changes.

    Columns: claim, and of what decides its rule: trials, median and verdict of the trials that are
    kept, and of all as trials_all, median_all, verdict_all.
    """
    about_times = [claim for claim in published.claims() if _reads_times(claim)]
    rows = []
    for name in dict.fromkeys(claim["experiment"] for claim in about_times):
        points, trials = selecting.points(dataset, name), selecting.trials(dataset, name)
        if points is None or len(laws.steady(points)) == len(points):
            continue
        mine = [
            releases.now(dataset, claim) for claim in about_times if claim["experiment"] == name
        ]
        kept = [_decided(dataset, claim) for claim in mine]
        unmarked = points.with_columns(
            pl.col("laws_broken").list.set_difference(pl.lit([laws.STEADY.id], pl.List(pl.String)))
        )
        tables = {(dataset, name, "points"): unmarked, (dataset, name, "trials"): trials}
        with selecting.instead(tables):
            every = [_decided(dataset, claim) for claim in mine]
        rows += [
            (claim["id"], *_side(few), *_side(all_of_them))
            for claim, few, all_of_them in zip(mine, kept, every, strict=True)
            if _side(few) != _side(all_of_them)
        ]
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


def _reads_times(claim: dict) -> bool:
    known = (QUANTITIES.get(name) for name in published.statistics_of(claim["rule"]))
    return any(quantity and quantity.points == Points.STEADY for quantity in known)


def _decided(dataset: str, claim: dict) -> Judgement:
    return rules.decide(dataset, claim["experiment"], claim["rule"])


def _side(part: Judgement) -> tuple[int, float | None, str]:
    return part.interval.trials, part.interval.estimate, part.verdict
