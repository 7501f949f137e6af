"""The progress of a dataset, and estimates of how long its builds and trials will take."""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from deathmatch.builds import nix, server_build
from deathmatch.capacity_search import search
from deathmatch.data import inventory, records
from deathmatch.errors import UserError
from deathmatch.plan.record import LEAST_ROUNDS
from deathmatch.plan.server import Server
from deathmatch.plan.trial import Trial
from deathmatch.run import failures

OVERHEAD_S = 2  # Snakemake and Python around a trial
START_STOP_S = 2  # start, checks and stop, without the warm-up
# A round of `measure.churn` without its messages: opening and closing connections, and the start of
# a process.
BETWEEN_ROUNDS_S = 0.6
BETWEEN_PROBES_S = 0.5  # the client's start, late answers, the check that the server answers
# The plan's estimate has the weight of this many trials, so that one short or slow trial at the
# beginning does not change the estimate of hundreds of others much.
PLAN_WEIGHT_TRIALS = 3


def seconds(trial: Trial) -> float:
    """Return a first estimate of how long the trial takes, as if each rate were an overload.

    After an overload the client waits for the open connections until its time-out; not in a closed
    loop.
    """
    plan, duration_s = trial.plan, trial.duration_s or 0
    rates = plan.rates_rps or ()
    waiting_s = min(duration_s, trial.experiment.load.timeout_s) if rates else 0
    offering_s = sum(duration_s + (waiting_s if rate else 0) for rate in rates)
    if trial.search:
        probes, probing_s = search.usual(trial.search)
        offering_s += probing_s + probes * BETWEEN_PROBES_S + START_STOP_S + trial.warm_up_s
    around_s = trial.warm_up_s + _churn_s(trial) + (plan.cool_down_s or 0)
    return OVERHEAD_S + START_STOP_S + around_s + offering_s


def _churn_s(trial: Trial) -> float:
    """Return how long the churn of connections takes, if its rate is steady from the beginning."""
    churn = trial.experiment.churn
    if churn is None:
        return 0
    return min(churn.rounds, LEAST_ROUNDS) * (churn.messages * churn.interval_s + BETWEEN_ROUNDS_S)


def measured(trials: Iterable[Trial], testbed: str, root: Path = Path()) -> dict[Trial, dict]:
    """Return the records, as in `trial.json`, of the trials that need not be measured again.

    They have the present specification and testbed. Raises UserError that names every damaged
    record.
    """
    return on_testbed(specified(trials, root), testbed)


def on_testbed(measured: dict[Trial, dict], testbed: str) -> dict[Trial, dict]:
    """Return the records of trials that were measured on the same testbed."""
    return {trial: record for trial, record in measured.items() if record["testbed"] == testbed}


def specified(trials: Iterable[Trial], root: Path = Path()) -> dict[Trial, dict]:
    """Return the records of the trials that have the present specification, on any testbed.

    A trial whose server, experiment or dataset has changed since is left out. Raises UserError that
    names every damaged record.
    """
    fitting, broken = {}, []
    for trial in trials:
        try:
            record = records.read(inventory.of_trial(trial, root))
        except FileNotFoundError:
            continue
        except UserError as error:
            broken.append(error)
            continue
        if record["spec"] == json.loads(trial.spec_text()):
            fitting[trial] = record
    if broken:
        first, *others = broken
        more = "".join(f"\n{error}" for error in others)
        raise UserError(first.what, first.where, f"{first.remedy}{more}")
    return fitting


@dataclass(frozen=True)
class Standing:
    """The progress of a run."""

    done: int
    failed: int
    total: int
    wait_s: float
    """An estimate of how long the trials that are left take, with the builds before them."""

    @property
    def ended(self) -> bool:
        """Whether no trial is left."""
        return self.done == self.total


def standing(trials: list[Trial], done: dict[Trial, dict], builds_s: float = 0) -> Standing:
    """Return how many trials are done, how many of these failed, and how long the rest takes.

    `done` holds the records of those that are `measured`. A trial whose server could not be
    measured is done, and failed; its duration is not used for the estimate. `builds_s` is how long
    the builds before the next trial take.
    """
    ended = [trial for trial in trials if trial in done]
    failed = {trial for trial in ended if not failures.measured(done[trial])}
    timed = [trial for trial in ended if trial not in failed and done[trial].get("wall_us")]
    ratio = _ratio({trial: done[trial]["wall_us"] / 1e6 + OVERHEAD_S for trial in timed})
    due = [trial for trial in trials if trial not in done]
    wait_s = ratio * sum(map(seconds, due))
    if due:
        wait_s += builds_s
    return Standing(len(ended), len(failed), len(trials), wait_s)


def _ratio(took_s: dict[Trial, float]) -> float:
    """Return the ratio of the measured to the estimated durations of trials; 1 without trials."""
    if not took_s:
        return 1
    planned_s = sum(map(seconds, took_s))
    weight_s = PLAN_WEIGHT_TRIALS * planned_s / len(took_s)
    return (weight_s + sum(took_s.values())) / (weight_s + planned_s)


def line(now: Standing) -> str:
    """Return "12 of 36 trials, 1 failed, about 9 min left", or "36 of 36 trials, all measured"."""
    failed = f"{now.failed} failed" if now.failed else ""
    if now.ended:
        rest = failed or "all measured"
    else:
        rest = ", ".join(filter(None, [failed, f"about {duration(now.wait_s)} left"]))
    return f"{now.done} of {now.total} trials, {rest}"


def duration(seconds: float) -> str:
    """Return "9 min", in whole minutes, rounded up; "2 h 5 min" from two hours on."""
    minutes = max(1, math.ceil(seconds / 60))
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


# Guesses for builds on two idle cores, until a build here has been recorded: by the registry of the
# packages; of a server's own sources, which may install packages; with `slow_build`.
REGISTRY_S = {"cargo": 90, "go": 30, "npm": 10, "maven": 15, "pypi": 10}
OWN_S, SLOW_S = 10, 300


def build_s(server: Server) -> float:
    """Return an estimate of how long the server's build takes if no other build runs."""
    measured_s = _last_build_s(server)
    if measured_s is not None:
        return measured_s
    if server.slow_build:
        return SLOW_S
    guesses_s = [s for key, s in REGISTRY_S.items() if getattr(server.packages, key, None)]
    if "cargo build" in (server.build or ""):
        guesses_s.append(REGISTRY_S["cargo"])
    return max(guesses_s, default=OWN_S)


def _last_build_s(server: Server) -> float | None:
    """Return how long its last build took, even of other sources; None if unknown."""
    for file in (server_build.RECORD, server_build.GOOD):
        if wall_us := server_build.record_of(server.name, file).get("wall_us"):
            return wall_us / 1e6
    return None


def builds_s(servers: Iterable[Server]) -> float:
    """Return how long the builds of servers take, in the order of `workflow/build.smk`.

    The longest begins first. Two are built at a time; with Nix, one.
    """
    ends_s = [0.0] if nix.chosen() else [0.0, 0.0]
    for took_s in sorted(map(build_s, servers), reverse=True):
        ends_s[ends_s.index(min(ends_s))] += took_s
    return max(ends_s)
