"""Measure a server compared with yardsticks, and write its card.

`./shell deathmatch measure NAME` searches for each server's capacity during a third of the time.
Then rounds of trials offer three shares of it, server after server, until the time is over. The
trials are those of an ordinary dataset.
"""

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from deathmatch.analysis import searched
from deathmatch.data import inventory, tidy
from deathmatch.paper import card
from deathmatch.plan import files, matrix, own_dataset
from deathmatch.plan import measure_design as plan
from deathmatch.plan.server import Server
from deathmatch.quantities.quantity import REPLY
from deathmatch.run import checkout, progress, subcommands

SEARCH_SUFFIX = "-search"
ROUNDS = 3
SEARCH_SHARE = 1 / 3
"""The share of the time after the builds in which searches begin."""
SEED = 1


def main(given: argparse.Namespace) -> int:
    """Measure the server named on the command line, write its card, return the exit status."""
    server = files.server(given.server)
    name = plan.dataset_name(server, given.name)
    experiment = plan.experiment(server, given.experiment)
    files.testbed(given.testbed)
    others = (
        plan.named_yardsticks(given.against, server, experiment)
        if given.against
        else plan.yardsticks(server, experiment, progress.build_s)
    )
    ends = time.monotonic() + 60 * given.minutes
    subcommands.hold()
    names = ", ".join(other.name for other in others)
    _say(f"{server.name} in {experiment}, compared with {names}")
    subcommands.build(server.name)
    built = [server, *(other for other in others if subcommands.run("build", other.name) == 0)]
    rates, slowdown = _rates(name, experiment, built, given.testbed, ends)
    _measure(name, experiment, rates, given.testbed, ends, slowdown)
    print(card.write(name, experiment, server))
    return 0


def _rates(
    name: str, experiment: str, servers: Sequence[Server], testbed: str, ends: float
) -> tuple[dict[str, tuple[int, ...]], float]:
    """Return the rates for each server, and by what factor trials took longer than estimated.

    The rates are shares of the capacity that a search found. When the time of the search is over,
    each server left is offered the first rates only. The factor is 1 at least.
    """
    dataset = name + SEARCH_SUFFIX
    first = {server.name: plan.FIRST_RATES_RPS for server in servers}
    title = f"{servers[0].title}: search for rates"
    began = time.monotonic()
    search_ends = began + SEARCH_SHARE * (ends - began)
    search, estimated_s = True, 0.0
    own_dataset.write(dataset, plan.text(title, experiment, first, 1, 1, SEED, search))
    records = []
    for server in first:
        if search and time.monotonic() >= search_ends:
            search = False
            left = list(first)[list(first).index(server) :]
            _say(f"the time of the search is over; first rates only for {', '.join(left)}")
            own_dataset.write(dataset, plan.text(title, experiment, first, 1, 1, SEED, search))
        elif search:
            _say(f"search for the capacity of {server}")
        for trial in matrix.trials(dataset, [server]):
            subcommands.trial(trial, testbed)
            estimated_s += progress.seconds(trial)
            records.append(inventory.of_trial(trial))
    slowdown = max(1, (time.monotonic() - began) / estimated_s)
    frames = tidy.frames(experiment, filter(Path.exists, records))
    return {server: plan.own_rates(_capacity_rps(frames, server)) for server in first}, slowdown


def _capacity_rps(frames: Mapping[str, pl.DataFrame], server: str) -> float:
    """Return a server's capacity; where no search found it, the most that it answered."""
    capacity = searched.ends(frames["probes"].filter(server=server))["capacity_rps"].max()
    most = frames["points"].filter(server=server)[REPLY].max()
    return capacity or most or plan.FIRST_RATES_RPS[0]


def _measure(
    name: str, experiment: str, rates: Mapping[str, tuple[int, ...]], testbed: str, ends: float,
    slowdown: float,
) -> None:  # fmt: skip
    """Measure round after round while there is time; ROUNDS at most, one at least."""
    server = files.server(next(iter(rates)))
    around_s = progress.OVERHEAD_S + progress.START_STOP_S + server.warm_up_s
    trial_s = (ends - time.monotonic()) / len(rates) / slowdown
    duration_s = plan.duration_s(trial_s, around_s, ROUNDS)
    title = f"{server.title}, compared with yardsticks"
    content = plan.text(title, experiment, rates, duration_s, ROUNDS, SEED, search=False)
    own_dataset.write(name, content)
    checkout.make_folders(name)
    trials = matrix.trials(name)
    number = 0
    for number in subcommands.rounds(ends, ROUNDS):
        for trial in (trial for trial in trials if trial.n == number):
            left = subcommands.minutes_left(ends)
            _say(f"round {number} of {ROUNDS}: {trial.server.name}; {left:.1f} min left")
            subcommands.trial(trial, testbed)
    if number < ROUNDS:
        _say(f"no time for round {number + 1} of {ROUNDS}")
    subcommands.run("tidy", f"data/{name}/{experiment}")


def _say(text: str) -> None:
    print(f"[measure] {text}", file=sys.stderr, flush=True)
