"""Whether to refuse a sitting, by numbers from its tables, and the machine's drift over sittings.

Each server does the same work each time: if the CPU time for a reply changes for most of them, the
machine has changed.
"""

from collections.abc import Callable, Collection, Mapping

import polars as pl

from deathmatch.agent.kernel import MODES
from deathmatch.data import limits, table_files, tables
from deathmatch.data.laws.law import TRIAL
from deathmatch.plan import files
from deathmatch.plan.dataset import Refusal
from deathmatch.quantities.definitions import CPU_PER_REPLY
from deathmatch.quantities.quantity import RATE, of_experiment

COST = CPU_PER_REPLY.name
SAID = {
    "other_load": "other load limits {:.1%} of its points",
    "stolen": "the hypervisor took {:.1%} of the CPU time",
    "null_drift": "the servers' CPU time for each reply changed by {:.1%}",
}
# A function for the points of earlier sittings, as reading them takes minutes.
Earlier = Callable[[], pl.DataFrame | None]
_PLACE = ["server", "variant", RATE]
DRIFT = {
    "experiment": pl.String, "server": pl.String, RATE: pl.Int64, "sitting": pl.String,
    "began": pl.Datetime("us", "UTC"), "cpu": pl.String, "trials": pl.Int64, COST: pl.Float64,
    "ratio": pl.Float64,
}  # fmt: skip


def numbers(
    experiment: str, points: pl.DataFrame, before: Earlier = lambda: None
) -> dict[str, float | None]:
    """Return the numbers of a sitting's points that `plan.dataset.Refusal` bounds; None if unknown.

    `before` returns the points of earlier sittings on the same kind of CPU, or None; it is called
    for a sitting of one round.
    """
    if "limit" not in points.columns or not len(points):
        return dict.fromkeys(SAID)
    found = points.select(
        # Other load is unknown where the server's wait for CPUs was not counted.
        other_load=limits.shows(points, limits.OTHER)
        .filter(pl.col("server_wait_ratio").is_not_null())
        .mean(),
        stolen=pl.col("cpu_steal_us").sum()
        / pl.sum_horizontal(f"cpu_{mode}_us" for mode in MODES).sum(),
    ).row(0, named=True)
    return found | {"null_drift": _drift(experiment, points, before)}


def why(found: Mapping[str, float | None], asked: Refusal | None) -> str:
    """Return the reasons to refuse a sitting with these numbers; "" if there are none."""
    bounds = asked.model_dump(exclude_none=True) if asked else {}
    above = [name for name, bound in bounds.items() if (found[name] or 0) > bound]
    return "; ".join(
        f"{SAID[name].format(found[name])}, of {bounds[name]:.1%} at most" for name in above
    )


def _drift(experiment: str, points: pl.DataFrame, before: Earlier) -> float | None:
    """Return the share by which a reply's cost changed, as defined by `plan.dataset.Refusal`.

    It is the median over all servers, variants and loads, since the cost of a single one, on an
    almost idle CPU, varies by half between trials.
    """
    own = _priced(experiment, points)
    rounds = own["n"].unique().sort()
    if len(rounds) == 1:
        earlier = before()
        if earlier is None:
            return None
        first, last = _priced(experiment, earlier), own
    else:
        third = max(1, len(rounds) // 3)
        first, last = (
            own.filter(pl.col("n").is_in(some.implode()))
            for some in (rounds.head(third), rounds.tail(third))
        )
    sides = [
        side.group_by(_PLACE, maintain_order=True).agg(pl.col(COST).median())
        for side in (last, first)
    ]
    ratio = sides[0].join(sides[1], on=_PLACE).select(pl.col(COST) / pl.col(f"{COST}_right"))
    return abs(ratio[COST].median() - 1) if len(ratio) else None


def _priced(experiment: str, points: pl.DataFrame) -> pl.DataFrame:
    """Return the points with their COST, including those limited by the client.

    Without these a sitting on a busy machine would have no drift to be refused for.
    """
    cost = CPU_PER_REPLY.of_trial.of_point().alias(COST)
    return of_experiment(points, experiment).with_columns(cost).drop_nulls(COST)


def drift(dataset: str, yardsticks: Collection[str]) -> pl.DataFrame:
    """Return the cost of a reply of the null server and the yardsticks in each sitting, by time.

    Columns: experiment, server, RATE, sitting, `began`, `cpu`, trials, the median of COST in
    microseconds, and `ratio`, this median over that of the experiment's first sitting. Each server
    has one variant and rate (0: closed loop): the one with the most trials without a limit of
    client or testbed, and among these the one with the most replies.
    """
    spec, parts = files.dataset(dataset), [pl.DataFrame(schema=DRIFT)]
    shown = pl.col("server").is_in({*limits.CEILINGS, *yardsticks})
    for name in spec.experiments:
        if not table_files.path_of(dataset, name, "points").is_file():
            continue
        points, trials = (tables.read(dataset, name, table) for table in ("points", "trials"))
        if "limit" not in points.columns:
            continue
        marked = points.with_columns(sound=~limits.by_harness(points))
        known = _priced(name, marked).filter(shown)
        most = (
            known.group_by(_PLACE, maintain_order=True)
            .agg(pl.col("sound").sum(), pl.len(), pl.col(CPU_PER_REPLY.of_trial.over).median())
            .sort(pl.exclude(_PLACE), descending=True, maintain_order=True)
            .unique("server", keep="first", maintain_order=True)
        )
        chosen = known.join(most, on=_PLACE, how="semi", maintain_order="left")
        began = trials.select(*TRIAL, "started_at", "cpu")
        found = chosen.select(*TRIAL, RATE, COST).join(began, on=TRIAL).sort("started_at")
        rounds = points["n"].unique().to_list()
        sitting_of = {n: spec.sitting_of(name, n) or "" for n in rounds}
        parts.append(
            found.with_columns(
                experiment=pl.lit(name),
                sitting=pl.col("n").replace_strict(sitting_of, return_dtype=pl.String),
            )
            .group_by("experiment", "server", RATE, "sitting", maintain_order=True)
            .agg(
                began=pl.col("started_at").min(), cpu=pl.col("cpu").first(),
                trials=pl.len().cast(pl.Int64), **{COST: pl.col(COST).median()},
            )
            .with_columns(ratio=pl.col(COST) / pl.col(COST).first().over("server"))
        )  # fmt: skip
    return pl.concat(part.select(*DRIFT) for part in parts)
