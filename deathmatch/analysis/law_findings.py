"""Results of the laws in a dataset, and what limited its points.

In: a dataset's tables. Out: frames for tables and a figure.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from deathmatch.data import laws, limits, tables
from deathmatch.data.laws.law import KEY, RATE, Evidence
from deathmatch.errors import UserError
from deathmatch.plan import files

# The tolerance between rate × mean time and the number under way.
OFF = 0.1
_TABLES = ("trials", "points", "samples", "seconds")


def statements() -> pl.DataFrame:
    """Return the laws: law, statement with its source, bound."""
    rows = [
        (f"`{law.id}`", f"{law.statement} ({law.source})", law.bound) for law in laws.LAWS.values()
    ]
    return pl.DataFrame(rows, schema=["law", "statement", "bound"], orient="row")


def evidences(dataset: str) -> dict[str, Evidence]:
    """Return the evidence of each experiment under load, by name."""
    by_experiment = {}
    for name in files.names("experiment"):
        if files.experiment(name).client is not None:
            try:
                frames = {table: tables.read(dataset, name, table) for table in _TABLES}
                frames["times"] = tables.scan(dataset, name, "times")
            except UserError:
                continue
            by_experiment[name] = laws.evidence(name, frames)
    return by_experiment


def judgements(given: Mapping[str, Evidence]) -> pl.DataFrame:
    """Return every judgement: experiment, laws.KEY, laws.FINDINGS, `broken`."""
    parts = [
        laws.judgements(evidence).select(pl.lit(name).alias("experiment"), pl.all())
        for name, evidence in given.items()
    ]
    empty = {"experiment": pl.String, "server": pl.String, "variant": pl.String, "n": pl.Int64}
    schema = empty | {RATE: pl.Int64} | laws.FINDINGS | {"broken": pl.Boolean}
    return pl.concat([pl.DataFrame(schema=schema), *parts])


def counts(judged: pl.DataFrame) -> pl.DataFrame:
    """Return for each law: law, judged and broken, of points."""
    key = ["experiment", *KEY]
    by_point = judged.group_by("law", *key, maintain_order=True).agg(pl.col("broken").any())
    summed = by_point.group_by("law", maintain_order=True).agg(
        judged=pl.len().cast(pl.Int64), broken=pl.col("broken").sum().cast(pl.Int64)
    )
    known = pl.DataFrame({"law": list(laws.LAWS)})
    return known.join(summed, on="law", how="left", maintain_order="left").select(
        pl.format("`{}`", "law").alias("law"), pl.col("judged", "broken").fill_null(0)
    )


@dataclass(frozen=True)
class Kept:
    """The number of points, of those left out entirely, and of those left out with their times.

    `without_course`: the number of points of which it is unknown whether they were steady.
    """

    points: int
    left_out: int
    unsteady: int
    without_course: int


def kept(given: Mapping[str, Evidence]) -> Kept:
    """Return how many points break a law, entirely or for their times."""
    points = [evidence.points for evidence in given.values()]
    broken = sum(len(frame) - len(laws.upheld(frame)) for frame in points)
    unsteady = sum(len(frame) - len(laws.steady(frame)) for frame in points)
    unknown = sum(frame["course"].null_count() for frame in points)
    return Kept(sum(map(len, points)), broken, unsteady, unknown)


def closed_loop(given: Mapping[str, Evidence]) -> pl.DataFrame:
    """Return reply rate × mean service time over the connections, of each point in closed loop.

    Columns: experiment, ratio. Each connection has one request under way, so that it is 1
    (Little 1961).
    """
    parts = [
        evidence.with_counted("service_time")
        .filter(pl.col("errors_total") == 0, pl.col(RATE) == 0)
        .select(
            experiment=pl.lit(name),
            ratio=pl.col("total_us")
            / (pl.col("test_duration_us") * float(evidence.load["connections"])),
        )
        for name, evidence in given.items()
        if evidence.client == "roundtrip"
    ]
    return pl.concat([pl.DataFrame(schema={"experiment": pl.String, "ratio": pl.Float64}), *parts])


def off(products: pl.DataFrame) -> int:
    """Return the number of rows of `closed_loop` whose ratio is more than OFF from 1."""
    return int(((products["ratio"] - 1).abs() > OFF).sum())


def limited(given: Mapping[str, Evidence]) -> pl.DataFrame:
    """Return what limited the points of each experiment: experiment, limit, points, share_percent.

    Limits that no point has are left out.
    """
    counted = (
        pl.concat(
            [
                pl.DataFrame(schema={"experiment": pl.String, "limit": pl.String}),
                *(
                    evidence.points.select(
                        experiment=pl.lit(name), limit=pl.col("limit").fill_null(limits.UNKNOWN)
                    )
                    for name, evidence in given.items()
                ),
            ]
        )
        .group_by("experiment", "limit", maintain_order=True)
        .agg(points=pl.len().cast(pl.Int64))
    )
    of_all = pl.col("points").sum().over("experiment")
    return counted.with_columns(share_percent=100 * pl.col("points") / of_all)
