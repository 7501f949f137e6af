"""The laws that every sound measurement obeys: each point is checked by all of them.

In: an experiment's tables without `probes`, which are no points: the search itself judges them.
Out: the laws that apply to a point, and those that it breaks. A point that breaks one stays in the
tables, marked with the law's ID, and is left out of figures and verdicts, as a whole or with the
law's columns.
"""

from collections.abc import Mapping

import polars as pl

from deathmatch.data.laws import conservation, kernel, time
from deathmatch.data.laws.law import JUDGED, KEY, Evidence, Law
from deathmatch.plan import files

LAWS: Mapping[str, Law] = {
    law.id: law
    for law in (
        conservation.little, conservation.requests, conservation.connections,
        conservation.histogram,
        conservation.bytes_received, conservation.did_something, kernel.opens, kernel.accepts,
        kernel.held, kernel.drops, kernel.retries, kernel.retry_times, kernel.queue,
        kernel.counted, kernel.growing, time.clock, time.quantiles, time.longest, time.cpu,
        time.client_cpu, time.steady, time.fair,
    )
}  # fmt: skip
"""Every law by its ID, in the order of the paper's table."""

STEADY = time.steady
# The columns of the points with the laws that apply and those broken; null if no law applies.
MARKS = {"laws_judged": pl.List(pl.String), "laws_broken": pl.List(pl.String)}
FINDINGS = {"law": pl.String} | JUDGED


def evidence(experiment: str, frames: Mapping[str, pl.DataFrame | pl.LazyFrame]) -> Evidence:
    """Return the evidence for the laws: an experiment's tables, given by name."""
    names = ("trials", "points", "times", "samples", "seconds")
    return Evidence(files.experiment(experiment), *(frames[name] for name in names))


def judgements(given: Evidence) -> pl.DataFrame:
    """Return every judgement: KEY, FINDINGS and `broken`; none if no load was offered."""
    if given.client is None:
        return pl.DataFrame(schema=FINDINGS | {"broken": pl.Boolean})
    parts = [law.judgements(given) for law in LAWS.values()]
    return pl.concat([part for part in parts if len(part)] or parts[:1])


def marked(points: pl.DataFrame, judged: pl.DataFrame) -> pl.DataFrame:
    """Return the points with MARKS from the judgements."""
    points = points.drop(MARKS, strict=False)
    if judged.is_empty():
        return points.with_columns(pl.lit(None, kind).alias(name) for name, kind in MARKS.items())
    of_points = judged.group_by(KEY, maintain_order=True).agg(
        laws_judged=pl.col("law").unique(maintain_order=True),
        laws_broken=pl.col("law").filter("broken").unique(maintain_order=True),
    )
    return points.join(of_points, on=KEY, how="left", maintain_order="left")


def upheld(points: pl.DataFrame) -> pl.DataFrame:
    """Return the points that break no law without columns; all points if there are no MARKS."""
    return _obeying(points, [law.id for law in LAWS.values() if not law.columns])


def readable(points: pl.DataFrame, column: str) -> pl.DataFrame:
    """Return the points that break no law about this column or histogram."""
    return _obeying(points, [law.id for law in LAWS.values() if column.startswith(law.columns)])


def steady(points: pl.DataFrame) -> pl.DataFrame:
    """Return the points whose times are valid: the run neither drifted nor jumped."""
    return readable(points, "latency")


def _obeying(points: pl.DataFrame, ids: list[str]) -> pl.DataFrame:
    if "laws_broken" not in points.columns:
        return points
    broken = pl.col("laws_broken").list.set_intersection(pl.lit(ids, pl.List(pl.String)))
    return points.filter((broken.list.len() == 0).fill_null(True))
