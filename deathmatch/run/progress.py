"""How far a dataset is, and how long its builds and trials will still take."""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from deathmatch.builds import nix, server_build, server_commands
from deathmatch.capacity_search import search
from deathmatch.data import inventory, records
from deathmatch.errors import UserError
from deathmatch.plan.record import LEAST_ROUNDS
from deathmatch.plan.server import Server
from deathmatch.plan.trial import Trial
from deathmatch.run.failures import UNMEASURED

OVERHEAD_S = 2  # Snakemake and Python around a trial
START_STOP_S = 2  # start, checks and stop, without the warm-up
# What a round of `measure.churn` takes besides its messages: openings, closing handshakes, the
# start of a process.
BETWEEN_ROUNDS_S = 0.6
BETWEEN_PROBES_S = 0.5  # the client's start, what is late, the check that the server answers
# What the plan says counts as much as so many trials: a first one that is short, or slow, does not
# yet decide how long hundreds of others take.
PLAN_WEIGHT_TRIALS = 3


def seconds(trial: Trial) -> float:
    """Return a first estimate of how long the trial takes, as if each rate were an overload.

    Then as much as was open at its end is waited for, until the client's time-out; not in a closed
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
    """Return how long connections come and go, if their rate is steady from the beginning."""
    churn = trial.experiment.churn
    if churn is None:
        return 0
    return min(churn.rounds, LEAST_ROUNDS) * (churn.messages * churn.interval_s + BETWEEN_ROUNDS_S)


def measured(trials: Iterable[Trial], testbed: str, root: Path = Path()) -> dict[Trial, dict]:
    """Return the records, as in `trial.json`, of those trials that need not be measured again.

    They ended as specified now, on the testbed on which they would run now; `testbed` is the
    default one. Raises UserError that names every record that is not whole.
    """
    return on_testbed(specified(trials, root), testbed)


def on_testbed(measured: dict[Trial, dict], testbed: str) -> dict[Trial, dict]:
    """Return those of the records that were measured where they would be now."""
    return {
        trial: record for trial, record in measured.items()
        if record["testbed"] == trial.testbed(testbed)
    }  # fmt: skip


def specified(trials: Iterable[Trial], root: Path = Path()) -> dict[Trial, dict]:
    """Return the records of those trials that ended as specified now, on any testbed.

    A trial whose server, experiment or dataset has changed since is left out. Raises UserError that
    names every record that is not whole.
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
    """How far a run is; times in seconds."""

    done: int
    failed: int
    total: int
    wait_s: float
    """Estimated, of the trials that are not done and the builds before them."""

    @property
    def ended(self) -> bool:
        """Whether no trial is left."""
        return self.done == self.total


def standing(trials: list[Trial], done: dict[Trial, dict], builds_s: float = 0) -> Standing:
    """Return how many of the trials are done, how many of these failed, and what the rest takes.

    `done` holds the records of those that are `measured`. One that could not be measured is done,
    and failed; it does not say how long the others take. `builds_s` is how long the builds take
    that come before the next trial.
    """
    ended = [trial for trial in trials if trial in done]
    failed = {trial for trial in ended if done[trial]["outcome"] in UNMEASURED}
    timed = [trial for trial in ended if trial not in failed and done[trial].get("wall_us")]
    ratio = _ratio({trial: done[trial]["wall_us"] / 1e6 + OVERHEAD_S for trial in timed})
    due = [trial for trial in trials if trial not in done]
    wait_s = ratio * sum(map(seconds, due))
    if due:
        wait_s += builds_s
    return Standing(len(ended), len(failed), len(trials), wait_s)


def _ratio(took_s: dict[Trial, float]) -> float:
    """Return the ratio of what trials took to what was estimated, from 1 before the first."""
    if not took_s:
        return 1
    planned_s = sum(map(seconds, took_s))
    weight_s = PLAN_WEIGHT_TRIALS * planned_s / len(took_s)
    return (weight_s + sum(took_s.values())) / (weight_s + planned_s)


def line(now: Standing) -> str:
    """Return "12 of 36 trials, 1 failed, about 9 min left"; "all measured" only if all are."""
    failed = f"{now.failed} failed" if now.failed else ""
    if now.ended:
        rest = failed or "all measured"
    else:
        rest = ", ".join(filter(None, [failed, f"about {duration(now.wait_s)} left"]))
    return f"{now.done} of {now.total} trials, {rest}"


def duration(seconds: float) -> str:
    """Return "9 min", in whole minutes, upward; "2 h 5 min" from two hours on."""
    minutes = max(1, math.ceil(seconds / 60))
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


REGISTRY_S = {"cargo": 90, "go": 30, "npm": 10, "maven": 15, "pypi": 10}
"""Rough guesses for a build on two idle cores, by the registry of its packages.

They serve until a build has been recorded here, which then counts instead."""

OWN_S = 10
"""A build of a server's own sources, which also installs Debian packages or unpacks others."""

SLOW_S = 300
"""A build that `slow_build` says takes minutes."""


def build_s(server: Server) -> float:
    """Return how long the server's build will take if nothing else is built meanwhile."""
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
    folder = server_commands.build_dir(server.name)
    for name in (server_build.RECORD, server_build.GOOD):
        try:
            return json.loads((folder / name).read_text())["wall_us"] / 1e6
        except (FileNotFoundError, KeyError, ValueError):
            continue
    return None


def builds_s(servers: Iterable[Server]) -> float:
    """Return how long all of them take, as `workflow/build.smk` orders them: the longest first.

    Two are built at a time; with Nix, one.
    """
    ends_s = [0.0] if nix.chosen() else [0.0, 0.0]
    for took_s in sorted(map(build_s, servers), reverse=True):
        ends_s[ends_s.index(min(ends_s))] += took_s
    return max(ends_s)
