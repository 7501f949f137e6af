"""Measure a server beside yardsticks, and write its card: `./shell deathmatch measure NAME`.

A short search finds each server's capacity; then rounds of trials offer three shares of it, server
after server, until the time is over. The trials are those of an ordinary dataset.
"""

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence

import polars as pl

from deathmatch.analysis import searched
from deathmatch.analysis.views import Experiment
from deathmatch.paper import card
from deathmatch.plan import files, matrix, paths
from deathmatch.plan import measure_design as plan
from deathmatch.plan.root import ROOT
from deathmatch.plan.server import Server
from deathmatch.plan.trial import Trial
from deathmatch.quantities.quantity import REPLY
from deathmatch.run import build_times, progress, subcommands, untracked

SEARCH_SUFFIX = "-search"
ROUNDS = 3
SHORTEST_S, LONGEST_S = 2.0, 10.0
"""Bounds of how long each rate is offered."""
SEED = 1


def main(given: argparse.Namespace) -> int:
    """Measure the server named on the command line, write its card, return the exit status."""
    os.chdir(ROOT)
    server = files.server(given.server)
    name = plan.dataset_name(server, given.name)
    experiment = plan.experiment(server, given.experiment)
    files.testbed(given.testbed)
    others = (
        plan.named_yardsticks(given.against, server, experiment)
        if given.against
        else plan.yardsticks(server, experiment, build_times.seconds)
    )
    ends = time.monotonic() + 60 * given.minutes
    subcommands.hold()
    _say(f"{server.name} in {experiment}, beside {', '.join(other.name for other in others)}")
    if subcommands.run("build", server.name):
        return 1
    built = [server, *(other for other in others if subcommands.run("build", other.name) == 0)]
    rates = _rates(name, experiment, built, given.testbed)
    _measure(name, experiment, rates, given.testbed, ends)
    print(card.write(name, experiment, server))
    return 0


def _rates(
    name: str, experiment: str, servers: Sequence[Server], testbed: str
) -> dict[str, tuple[int, ...]]:
    """Return the rates for each server, from a search for its capacity."""
    dataset = name + SEARCH_SUFFIX
    first = {server.name: plan.FIRST_RATES_RPS for server in servers}
    title = f"{servers[0].title}: search for rates"
    _write(dataset, plan.text(title, experiment, first, 1, 1, SEED, search=True))
    for trial in _trials(dataset, experiment, list(first)):
        _say(f"search for the capacity of {trial.server.name}")
        subcommands.trial(trial, testbed)
    subcommands.run("tidy", f"data/{dataset}/{experiment}")
    found = Experiment(dataset, experiment)
    return {server: plan.own_rates(_capacity_rps(found, server)) for server in first}


def _capacity_rps(found: Experiment, server: str) -> float:
    """Return a server's capacity; where no search found it, the most that it answered."""
    capacity = searched.ends(found.probes.filter(server=server))["capacity_rps"].max()
    most = found.points.filter(pl.col("server") == server)[REPLY].max()
    return capacity or most or plan.FIRST_RATES_RPS[0]


def _measure(
    name: str, experiment: str, rates: Mapping[str, tuple[int, ...]], testbed: str, ends: float
) -> None:
    """Measure round after round while there is time; ROUNDS at most, one at least."""
    left_s = ends - time.monotonic()
    around_s = progress.OVERHEAD_S + progress.START_STOP_S + 1
    each_s = left_s / (ROUNDS * len(rates)) - around_s
    duration_s = round(min(LONGEST_S, max(SHORTEST_S, each_s / len(plan.SHARES))), 1)
    title = f"{files.server(next(iter(rates))).title}, beside yardsticks"
    _write(name, plan.text(title, experiment, rates, duration_s, ROUNDS, SEED, search=False))
    untracked.make_folders(name)
    trials = _trials(name, experiment, list(rates))
    longest_s = 0.0
    for number in range(1, ROUNDS + 1):
        if number > 1 and time.monotonic() + longest_s > ends:
            _say(f"no time for round {number} of {ROUNDS}")
            break
        began = time.monotonic()
        for trial in (trial for trial in trials if trial.n == number):
            left = max(0, ends - time.monotonic()) / 60
            _say(f"round {number} of {ROUNDS}: {trial.server.name}; {left:.1f} min left")
            subcommands.trial(trial, testbed)
        longest_s = max(longest_s, time.monotonic() - began)
    subcommands.run("tidy", f"data/{name}/{experiment}")


def _trials(dataset: str, experiment: str, servers: Sequence[str]) -> list[Trial]:
    return [
        trial for trial in matrix.trials(dataset, None, [experiment])
        if trial.server.name in servers
    ]  # fmt: skip


def _write(dataset: str, text: str) -> None:
    paths.path_of("dataset", dataset).write_text(text)


def _say(text: str) -> None:
    print(f"[measure] {text}", file=sys.stderr, flush=True)
