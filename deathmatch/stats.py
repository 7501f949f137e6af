"""Statistics over trials: medians with bootstrap intervals, ratios within a block, quantiles,
lines through measured costs and where two of them meet.

The trial is the unit of repetition: what happens within one is summarised to one number first.
"""

import numpy as np
import polars as pl
from scipy.stats import bootstrap

CONFIDENCE = 0.95
RESAMPLES = 2000
SEED = 2009

INTERVAL = {"trials": pl.Int64, "median": pl.Float64, "low": pl.Float64, "high": pl.Float64}


def interval(values: list[float]) -> dict[str, float | int | None]:
    """Return the number of trials, their median and its bootstrap interval.

    Keys as in INTERVAL. The interval is the percentile bootstrap (Efron 1979) of the median at
    CONFIDENCE, from a fixed seed; with fewer than two trials low and high are None. With three,
    it is as wide as their range.
    """
    known = np.asarray([value for value in values if value is not None], dtype=float)
    if len(known) == 0:
        return {"trials": 0, "median": None, "low": None, "high": None}
    middle = float(np.median(known))
    if len(known) == 1:
        return {"trials": 1, "median": middle, "low": None, "high": None}
    if np.ptp(known) == 0:
        return {"trials": len(known), "median": middle, "low": middle, "high": middle}
    found = bootstrap(
        (known,), np.median, n_resamples=RESAMPLES, confidence_level=CONFIDENCE,
        method="percentile", rng=np.random.default_rng(SEED),
    ).confidence_interval  # fmt: skip
    return {
        "trials": len(known), "median": middle, "low": float(found.low), "high": float(found.high),
    }  # fmt: skip


def range_coverage(trials: int) -> float:
    """Return how often the range of so many trials holds the median that they are drawn about.

    1 - 2^(1 - n) whatever the distribution: it misses where all fall on one side (Thompson 1936,
    Annals of Mathematical Statistics 7).
    """
    return 1 - 2.0 ** (1 - trials)


def summarise(frame: pl.DataFrame, by: list[str], column: str) -> pl.DataFrame:
    """Return for each group of `by` the interval of `column`: columns `by` and INTERVAL's."""
    groups = frame.group_by(by, maintain_order=True).agg(pl.col(column))
    rows = [{name: row[name] for name in by} | interval(row[column]) for row in groups.to_dicts()]
    return pl.DataFrame(rows, schema={name: frame.schema[name] for name in by} | INTERVAL)


def ratio(
    frame: pl.DataFrame, above: pl.Expr, below: pl.Expr, column: str, block: str = "n"
) -> dict[str, float | int | None]:
    """Return the interval of `column`'s ratio between two selections, paired by `block`.

    Each block (a repetition of the whole matrix) gives one ratio, so that drift of the machine
    cancels. A block that lacks one side, or has zero below, is left out. Each selection must
    hold at most one row a block (ValueError).
    """
    sides = [frame.filter(which).select(block, column) for which in (above, below)]
    if any(side[block].n_unique() != len(side) for side in sides):
        raise ValueError("a selection holds several rows of one block")
    both = sides[0].join(sides[1], on=block, suffix="_below").drop_nulls()
    both = both.filter(pl.col(f"{column}_below") != 0)
    return interval((both[column] / both[f"{column}_below"]).to_list())


def quantile_us(histogram: pl.DataFrame, q: float, total: int | None = None) -> int | None:
    """Return the q-quantile, in us, of a histogram with the columns time_us and count.

    With `total`, what is not in the histogram counts as slower than all that is: a quantile that
    falls there is None, not a number.
    """
    ordered = histogram.group_by("time_us").agg(pl.col("count").sum()).sort("time_us")
    counted = ordered["count"].sum()
    rank = q * (total if total is not None else counted)
    reached = ordered.filter(pl.col("count").cum_sum() >= rank)
    return reached["time_us"][0] if counted and len(reached) else None


def line(x: list[float], y: list[float]) -> dict[str, dict[str, float | int | None]] | None:
    """Return the straight line through costs `y` at levels `x`: {"fixed": …, "slope": …}.

    Each has INTERVAL's keys; its "median" is the estimate, "trials" the fewest at any level. The
    fit is least squares of relative residuals, since a cost's noise grows with it. The interval is
    the percentile bootstrap over the trials of each level, from a fixed seed; with one trial at a
    level low and high are None. None with fewer than two levels.
    """
    found = _lines(x, y, SEED)
    if found is None:
        return None
    return {name: _estimate(found[:, i], x) for i, name in enumerate(("fixed", "slope"))}


def crossing(
    steep: tuple[list[float], list[float]], flat: tuple[list[float], list[float]]
) -> dict[str, float | int | None]:
    """Return from which x on the line through `flat` lies below that through `steep`.

    Both are (x, y) as in `line`, of which see the interval; keys as in INTERVAL. 0 if it is below
    from the start, infinity if it never is; without two levels on both sides, nothing.
    """
    a, b = _lines(*steep, SEED), _lines(*flat, SEED + 1)
    if a is None or b is None:
        return interval([])
    with np.errstate(divide="ignore", invalid="ignore"):
        at = (b[:, 0] - a[:, 0]) / (a[:, 1] - b[:, 1])
    meets = np.where(a[:, 1] > b[:, 1], np.maximum(at, 0), np.where(a[:, 0] > b[:, 0], 0, np.inf))
    return _estimate(meets, [*steep[0]] if _fewest(steep[0]) <= _fewest(flat[0]) else [*flat[0]])


def _lines(x: list[float], y: list[float], seed: int) -> np.ndarray | None:
    """Return rows of intercept and slope: of the data first, then of RESAMPLES resamples."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    levels = np.unique(x)
    if len(levels) < 2:
        return None
    draw, drawn, weight = (
        np.random.default_rng(seed),
        np.empty((RESAMPLES, len(y))),
        np.empty(len(y)),
    )
    for level in levels:
        at = np.flatnonzero(x == level)
        drawn[:, at] = draw.choice(y[at], (RESAMPLES, len(at)))
        weight[at] = 1 / np.median(y[at])
    design = np.linalg.pinv(np.column_stack([weight, weight * x]))
    return np.vstack([y, drawn]) * weight @ design.T


def _fewest(x: list[float]) -> int:
    return int(np.unique(x, return_counts=True)[1].min())


def _estimate(values: np.ndarray, x: list[float]) -> dict[str, float | int | None]:
    fewest, low, high = _fewest(x), None, None
    if fewest > 1:
        tail = (1 - CONFIDENCE) / 2
        # Infinity is a value like any other: no interpolation with it.
        low, high = (
            float(q) for q in np.quantile(values[1:], [tail, 1 - tail], method="inverted_cdf")
        )
    return {"trials": fewest, "median": float(values[0]), "low": low, "high": high}
