"""How far a dataset is and how long it will still take."""

import json
import math
from pathlib import Path

from deathmatch.data import records
from deathmatch.errors import UserError
from deathmatch.plan.trial import Trial

OVERHEAD_S = 2  # Snakemake and Python around a trial
START_STOP_S = 2  # start, checks and stop, beside the warm-up


def seconds(trial: Trial) -> float:
    """Return a first estimate of how long the trial takes: its rates, twice for overloads."""
    plan = trial.plan
    offering_s = 2 * len(plan.rates_rps or ()) * (plan.duration_s or 0)
    around_s = trial.warm_up_s + (plan.cool_down_s or 0)
    return OVERHEAD_S + START_STOP_S + around_s + offering_s


def measured(trials: list[Trial], testbed: str, root: Path = Path()) -> dict[Trial, dict]:
    """Return the records, as in `trial.json`, of those trials that were measured as specified now.

    One whose server, experiment, dataset or (default) testbed has changed since is measured again,
    and not here. Raises UserError for a record that is no JSON.
    """
    found = {}
    for trial in trials:
        try:
            record = records.read(root / trial.path / "trial.json")
        except FileNotFoundError:
            continue
        bed = trial.testbed(testbed)
        now = {"testbed": bed, "spec": json.loads(trial.spec_text())}
        if now.items() <= record.items():
            found[trial] = record
    return found


def left(trials: list[Trial], done: dict[Trial, dict]) -> tuple[int, float]:
    """Return how many of the trials are done and the estimated seconds that the others take.

    `done` holds the records of those that are `measured`; the estimate is scaled by what they took.
    """
    took_s, estimated_s = 0.0, 0.0
    ended = [trial for trial in trials if trial in done]
    for trial in ended:
        if wall_us := done[trial].get("wall_us"):
            took_s += wall_us / 1e6 + OVERHEAD_S
            estimated_s += seconds(trial)
    scale = took_s / estimated_s if estimated_s else 1
    wait_s = scale * sum(seconds(trial) for trial in trials if trial not in done)
    return len(ended), wait_s


def line(done: int, total: int, wait_s: float) -> str:
    """Return "12 of 36 trials, about 9 min left"."""
    wait = f"about {math.ceil(wait_s / 60)} min left" if wait_s else "all measured"
    return f"{done} of {total} trials, {wait}"


class Progress:
    """How far a run is, told each time that one of its trials has ended."""

    def __init__(self, trials: list[Trial], records: dict[Trial, dict], testbed: str) -> None:
        """Take the trials of the run and the records of those that are `measured` already."""
        self.trials, self.records, self.testbed = trials, dict(records), testbed
        self.of_file = {str(trial.path / "trial.json"): trial for trial in trials}

    def finished(self, files: list[str]) -> str | None:
        """Return "[12 of 36 trials, about 9 min left] which", if these files are a trial's."""
        trial = next((self.of_file[file] for file in files if file in self.of_file), None)
        if trial is None:
            return None
        name = f"{trial.experiment.name} {trial.server.name} {trial.variant} #{trial.n}"
        try:
            self.records |= measured([trial], self.testbed)
            done, wait_s = left(self.trials, self.records)
            how_far = line(done, len(self.trials), wait_s)
        except UserError as error:
            # Another server's file may be broken meanwhile: this trial is measured all the same.
            how_far = f"measured, but {error.what} ({error.where})"
        return f"[{how_far}] {name}"
