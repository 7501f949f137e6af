"""Results of the laws in a dataset, and in result files that others published.

In: a dataset's tables; `data/published/results/`. Out: frames for tables and a figure.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from deathmatch.data import laws, tables
from deathmatch.data.laws.law import KEY, RATE, Evidence
from deathmatch.errors import UserError
from deathmatch.plan import files
from deathmatch.plan.paths import ROOT

RESULTS = ROOT / "data" / "published" / "results"
# The tolerance between rate × mean time and the number under way, in tables with few digits.
OFF = 0.1
# A mean of fewer connections depends mostly on the sampling.
FEWEST = 100
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


def under_way(given: Mapping[str, Evidence]) -> pl.DataFrame:
    """Return rate × mean time, and an independent count of the requests under way.

    Columns: experiment, how ("closed loop" or "sampled"), product, counted, ratio. In closed loop
    each connection has one request under way. httperf's connections are the trapezoidal mean of the
    samples of its descriptors; only points where all were answered and FEWEST or more were under
    way count.
    """
    parts = [
        _under_way(evidence).select(pl.lit(name).alias("experiment"), pl.all())
        for name, evidence in given.items()
        if evidence.client in ("httperf", "roundtrip")
    ]
    schema = {"experiment": pl.String, "how": pl.String, "product": pl.Float64,
              "counted": pl.Float64}  # fmt: skip
    whole = pl.concat([pl.DataFrame(schema=schema), *parts])
    return whole.with_columns(ratio=pl.col("product") / pl.col("counted"))


def _under_way(given: Evidence) -> pl.DataFrame:
    whole = pl.col("errors_total") == 0
    if given.client == "roundtrip":
        points = given.with_counted("service_time").filter(whole, pl.col(RATE) == 0)
        return points.select(
            how=pl.lit("closed loop"),
            product=pl.col("total_us") / pl.col("test_duration_us"),
            counted=pl.lit(float(given.load["connections"])),
        )
    held, before = pl.col("client_descriptors"), pl.col("client_descriptors").shift().over(KEY)
    area = (held + before) / 2 * pl.col("time_us").diff().over(KEY)
    sampled = (
        given.during.with_columns(area=area)
        .group_by(KEY, maintain_order=True)
        .agg(pl.col("area").sum())
    )
    points = given.with_counted("connection_time").filter(whole).join(sampled, on=KEY)
    product = pl.col("counted") * pl.col("connection_time_avg_us") / pl.col("test_duration_us")
    compared = points.select(
        how=pl.lit("sampled"), product=product, counted=pl.col("area") / pl.col("test_duration_us")
    )
    return compared.filter(pl.col("counted") >= FEWEST)


def off(products: pl.DataFrame) -> pl.DataFrame:
    """Return how well `under_way` or `results` fit: how or title, n, off.

    `off`: the number of rows whose ratio is more than OFF from 1.
    """
    by = "title" if "title" in products.columns else "how"
    return products.group_by(by, maintain_order=True).agg(
        n=pl.len().cast(pl.Int64),
        off=((pl.col("ratio") - 1).abs() > OFF).sum().cast(pl.Int64),
    )


def sources() -> dict[str, dict]:
    """Return the published result files by name: title, repository, path, commit, load."""
    return tomllib.loads((RESULTS / "sources.toml").read_text())


def results() -> pl.DataFrame:
    """Return the published rows: title, system, product, counted, ratio.

    `counted` is what the file says: its connections times the requests in flight on each.
    """
    parts = []
    for name, about in sources().items():
        rows = pl.read_csv(RESULTS / f"{name}.csv", schema_overrides={"rate_rps": pl.Float64})
        parts.append(rows.select(
            pl.lit(about["title"]).alias("title"), "system",
            product=pl.col("rate_rps") * pl.col("latency_mean_us") / 1e6,
            counted=pl.lit(float(about["connections"] * about["in_flight"])),
        ))  # fmt: skip
    return pl.concat(parts).with_columns(ratio=pl.col("product") / pl.col("counted"))
