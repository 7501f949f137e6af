"""Run each variant of a dataset once, for a second: `./shell deathmatch rehearse DATASET`.

Writes data/planned/<dataset>-rehearsal.csv: the outcome of each variant that was run by now. What
has run by the same specification is not run again.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from deathmatch.data import inventory, records
from deathmatch.plan import files, matrix, own_dataset, paths, selection
from deathmatch.plan import record as plan_record
from deathmatch.plan.dataset import Dataset, ExperimentPlan, Grid
from deathmatch.plan.experiment import Experiment
from deathmatch.plan.trial import Trial
from deathmatch.run import checkout, failures, progress, subcommands

SUFFIX = "-rehearsal"
RATE_RPS = 100
DURATION_S = 1
MESSAGES = 1000
FOLDER = Path("data", "planned")
COLUMNS = dict.fromkeys(("experiment", "server", "variant", "outcome", "reason"), pl.String)
NOT_RUN = "not run"


def main(given: argparse.Namespace) -> int:
    """Rehearse the dataset named on the command line; return 1 if a variant does not run."""
    name = given.dataset + SUFFIX
    text = text_of(files.dataset(given.dataset))
    subcommands.hold()
    checkout.make_folders(name)
    own_dataset.write(name, text)
    try:
        trials = selection.given(given).trials(name)
        _run(trials, given.testbed)
        before = [trial for trial in matrix.trials(name) if inventory.of_trial(trial).exists()]
    finally:
        # Else the checkout would differ from its commit, which each trial of the dataset records.
        paths.path_of("dataset", name).unlink()
    rows = [_row(trial) for trial in dict.fromkeys([*before, *trials])]
    FOLDER.mkdir(parents=True, exist_ok=True)
    file = FOLDER / f"{name}.csv"
    pl.DataFrame(rows, schema=COLUMNS).sort("experiment", "server", "variant").write_csv(file)
    failed = [row for row in rows if row["reason"]]
    for row in failed:
        print(f"{row['experiment']} {row['server']} {row['variant']}: {row['reason']}")
    print(f"{file}: {len(rows) - len(failed)} of {len(rows)} variants ran well")
    return 1 if failed else 0


def _run(trials: Sequence[Trial], testbed: str) -> None:
    done = progress.measured(trials, testbed)
    due = [trial for trial in trials if trial not in done]
    for place, trial in enumerate(due, 1):
        where = trial.path.relative_to(Path("data", trial.dataset)).parent
        print(f"[rehearse] {place} of {len(due)}: {where}", file=sys.stderr, flush=True)
        subcommands.trial(trial, testbed)


def _row(trial: Trial) -> Mapping[str, str]:
    named = {
        "experiment": trial.experiment.name, "server": trial.server.name,
        "variant": trial.variant.name,
    }  # fmt: skip
    file = inventory.of_trial(trial)
    if not file.exists():
        return named | {"outcome": NOT_RUN, "reason": "its trial could not be run"}
    record = records.read(file)
    reason = failures.reason_of(record) or _of_client(record["points"])
    return named | {"outcome": record["outcome"], "reason": reason}


def _of_client(points: Sequence[Mapping]) -> str:
    """Return how the load generator ended if not well; empty if it did."""
    states = [plan_record.client_state(point) for point in points if "client_state" in point]
    wrong = [state for state in states if state != plan_record.ENDED_WELL]
    return f"load generator: {wrong[0]}" if wrong else ""


def text_of(dataset: Dataset) -> str:
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
