"""What the same variants cost on two machines: CPU time of a reply in two datasets.

In: the names of two datasets. Out: a row for each variant that both measured with one version of
its server, what each dataset was measured on, and a sentence.
"""

import polars as pl

from deathmatch.analysis import phrases, views
from deathmatch.analysis.reply_rates import RATE
from deathmatch.data import table_files, tables
from deathmatch.plan import files
from deathmatch.quantities.definitions import CPU_PER_REPLY

COST = CPU_PER_REPLY.name
COSTS = {
    "experiment": pl.String,
    "label": pl.String,
    RATE: pl.Int64,
    COST: pl.Float64,  # medians over trials
    f"{COST}_other": pl.Float64,
    "ratio": pl.Float64,
}
_KNOWN = ["cpu", "cpus", "kernel", "started_at", "outcome"]


def measured(dataset: str) -> list[str]:
    """Return the experiments of which a dataset has tables."""
    named = files.names("experiment")
    return [name for name in named if table_files.path_of(dataset, name, "trials").is_file()]


def costs(dataset: str, other: str) -> pl.DataFrame:
    """Return what a reply costs a server in both datasets, with the columns of COSTS.

    Of each variant whose server had one version in both, at the lowest rate that both offered: a
    queue costs least there. A closed loop, which offers no rate, is left out. Sorted by experiment
    and ratio.
    """
    parts = [pl.DataFrame(schema=COSTS)]
    for name in sorted({*measured(dataset)} & {*measured(other)}):
        keys = ["server", "configuration", *files.experiment(name).factors, "version", RATE]
        sides = [_per_variant(part, name, keys) for part in (dataset, other)]
        both = sides[0].join(sides[1].drop("label"), on=keys, suffix="_other", nulls_equal=True)
        lowest = both.filter(pl.col(RATE) == pl.col(RATE).min().over("label"))
        made = lowest.with_columns(
            experiment=pl.lit(name), ratio=pl.col(COST) / pl.col(f"{COST}_other")
        )
        parts.append(made.select(*COSTS))
    return pl.concat(parts).sort("experiment", "ratio", "label")


def _per_variant(dataset: str, experiment: str, keys: list[str]) -> pl.DataFrame:
    """Return the median cost of a reply by `keys`, with `label`; no row where none is counted."""
    seen = views.Experiment(dataset, experiment)
    points = seen.valid_points
    if not {"server_cpu_ns", "replies", RATE} <= set(points.columns):
        names = seen.trials.schema | {RATE: pl.Int64}
        schema = {name: names[name] for name in keys} | {"label": pl.String, COST: pl.Float64}
        return pl.DataFrame(schema=schema)
    trial = ["server", "variant", "n"]
    answered = points.filter(pl.col(RATE) > 0, pl.col("replies") > 0).drop_nulls("server_cpu_ns")
    return (
        answered.join(seen.trials.select(*trial, "version"), on=trial)
        .with_columns(CPU_PER_REPLY.of_trial.of_point().alias(COST))
        .group_by(keys, maintain_order=True)
        .agg(pl.first("label"), pl.median(COST))
    )


def by_experiment(costs: pl.DataFrame) -> pl.DataFrame:
    """Return the ratios of `costs` by experiment: experiment, variants, least, median, most.

    The last row, "all", is over the variants of all experiments.
    """
    ratio = pl.col("ratio")
    everything = pl.concat([costs, costs.with_columns(experiment=pl.lit("all"))])
    return everything.group_by("experiment", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("variants"), least=ratio.min(), median=ratio.median(),
        most=ratio.max(),
    )  # fmt: skip


def machines(dataset: str) -> pl.DataFrame:
    """Return what a dataset was measured on: dataset, trials, failed, first, last, machine.

    `machine` is in words, `first` and `last` are the days of its first and last trial.
    """
    trials = pl.concat(
        [tables.read(dataset, name, "trials").select(_KNOWN) for name in measured(dataset)]
    )
    kinds = trials.drop_nulls("cpu").select("cpus", "cpu", "kernel").unique().sort(pl.all())
    named = [f"{cpus} CPUs ({cpu}), Linux {kernel}" for cpus, cpu, kernel in kinds.iter_rows()]
    day = pl.col("started_at").dt.strftime("%Y-%m-%d")
    return trials.select(
        dataset=pl.lit(dataset),
        trials=pl.len().cast(pl.Int64),
        failed=(~pl.col("outcome").str.starts_with("measured")).sum().cast(pl.Int64),
        first=day.min(),
        last=day.max(),
        machine=pl.lit(phrases.enumeration(named) or "an unknown machine"),
    )
