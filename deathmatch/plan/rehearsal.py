"""A rehearsal of a dataset: each of its variants once, for a second, without a search.

    text(files.dataset("decision"))   # the file of an ordinary dataset

It shows which variants run before days are spent on them.
"""

from deathmatch.plan import files, own_dataset
from deathmatch.plan.dataset import Dataset, ExperimentPlan, Grid
from deathmatch.plan.experiment import Experiment

SUFFIX = "-rehearsal"
RATE_RPS = 100
DURATION_S = 1
MESSAGES = 1000


def text(dataset: Dataset) -> str:
    """Return the text of the rehearsal's file."""
    head = {"title": f"rehearsal: {dataset.title}", "trials": 1, "seed": dataset.seed}
    experiments = {}
    for name, plan in dataset.experiments.items():
        experiment = files.experiment(name)
        grids = [_variants(experiment, grid) for grid in plan.grids]
        experiments[name] = (_steps(experiment, plan), grids)
    return own_dataset.text(head, experiments)


def _steps(experiment: Experiment, plan: ExperimentPlan) -> dict[str, object]:
    """Return what a trial goes through, as short as it can be."""
    if experiment.client is None:
        return {"messages": [MESSAGES]}
    steps: dict[str, object] = {"rates_rps": [RATE_RPS], "duration_s": DURATION_S}
    if plan.warm_up_rate_rps is not None:
        steps |= {"warm_up_rate_rps": RATE_RPS, "warm_up_s": DURATION_S}
    return steps


def _variants(experiment: Experiment, grid: Grid) -> dict[str, object]:
    """Return a grid's servers and levels, without factors that only say how long a trial is."""
    named = {"servers": grid.servers, "omit": grid.omit}
    lasting = {name for name, factor in experiment.factors.items() if factor.durations_s}
    levels = {name: known for name, known in grid.levels.items() if name not in lasting}
    return {key: value for key, value in named.items() if value} | levels
