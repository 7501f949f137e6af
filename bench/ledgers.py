#!/usr/bin/env python3
"""Simulate the errors of the ledger's verdicts, on planted ledgers.

    ./shell python bench/ledgers.py [--ledgers 10000]

A planted ledger has a rule of each kind below, over 3, 5 or 9 rounds. Trials differ by 2 to 20 %,
and from the first round to the last the machine becomes a sixth slower, or faster. *At the
threshold* the truth is the threshold itself, so that each verdict is false; a rule with one part
may give 5 % of them. *Away*, the truth is half or double the threshold, at random; a verdict is
right if it is on the side of the truth. *Any* is the share of ledgers with a false verdict that
remains after Holm's correction.
"""

import argparse
import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from deathmatch.analysis import judging, trial_tests  # noqa: E402
from deathmatch.analysis.by_trial import Values  # noqa: E402
from deathmatch.analysis.judging import NOT, REPLICATED, Judgement, Part  # noqa: E402
from deathmatch.quantities.quantity import Kind  # noqa: E402

TRIALS = (3, 5, 9)
DRIFT = 1 / 6
SPREADS = (0.02, 0.2)
AWAY = 2.0
"""The ratio of truth and threshold, either way, if a verdict can be right."""
ABOVE = judging.claimed_range(1, "above")
WITHIN = (1 / 1.1, 1.1)
COLUMNS = {"rule": pl.String, "trials": pl.Int64, "false": pl.Float64, "no": pl.Float64,
           "right": pl.Float64, "wrong": pl.Float64}  # fmt: skip


class Machine:
    """Trials of a drifting machine: `chance` draws, `drift` has the factor of each round."""

    def __init__(self, chance: np.random.Generator, trials: int):
        self.chance, self.trials = chance, trials
        by_round = np.linspace(-0.5, 0.5, trials) * math.log(1 + DRIFT)
        self.drift = np.exp(by_round * chance.choice((-1, 1)))
        self.spread = chance.uniform(*SPREADS)

    def values(self, truth: float) -> Values:
        """Return a trial's value in each round, with `truth` as the geometric mean."""
        noise = np.exp(self.chance.normal(0, self.spread, self.trials))
        return self.side(truth * noise * self.drift)

    def side(self, values: np.ndarray, kind: Kind = Kind.POSITIVE) -> Values:
        """Return the values by round, from 1 on."""
        return Values(dict(enumerate(map(float, values), 1)), kind=kind)


def _ratio(machine: Machine, truth: float) -> list[Part]:
    return [Part([machine.values(truth), machine.values(1)], *ABOVE)]


def _level(machine: Machine, truth: float) -> list[Part]:
    return [Part([machine.values(truth)], *ABOVE)]


def _size(machine: Machine, truth: float) -> list[Part]:
    # Within a tenth: the upper bound is the threshold, and a smaller ratio is claimed.
    claimed = truth * WITHIN[1] if truth >= 1 else 1.0
    return [Part([machine.values(claimed), machine.values(1)], *WITHIN)]


def _unpaired(machine: Machine, truth: float) -> list[Part]:
    return [Part([machine.values(truth), machine.values(1)], *ABOVE, paired=False)]


def _of_parts(count: int) -> Callable[[Machine, float], list[Part]]:
    return lambda machine, truth: [_ratio(machine, truth)[0] for _ in range(count)]


def _count(machine: Machine, truth: float) -> list[Part]:
    # Claimed: trials have no event. At the threshold half of them have none.
    expected = math.log(2) if truth == 1 else 0.02 if truth > 1 else 5.0
    counts = machine.side(machine.chance.poisson(expected, machine.trials), Kind.COUNT)
    return [Part([counts], *judging.claimed_range(0.5, "below"))]


def _outcome(machine: Machine, truth: float) -> list[Part]:
    share = 0.5 if truth == 1 else 0.98 if truth > 1 else 0.02
    outcomes = machine.side(machine.chance.random(machine.trials) < share, Kind.OUTCOME)
    return [Part([outcomes], *judging.claimed_range(0.5, "above"))]


RULES: dict[str, Callable[[Machine, float], list[Part]]] = {
    "ratio": _ratio,
    "level": _level,
    "within": _size,
    "ratio, unpaired": _unpaired,
    "4 comparisons": _of_parts(4),
    "10 comparisons": _of_parts(10),
    "count": _count,
    "outcome": _outcome,
}
"""Rules by name: each returns its parts on a machine, given the truth over the threshold."""


def planted(chance: np.random.Generator, trials: int, truth: float) -> dict[str, Judgement]:
    """Return the judgements of a planted ledger by rule."""
    return {
        name: judging.together(rule(Machine(chance, trials), truth)) for name, rule in RULES.items()
    }


def simulated(ledgers: int, trials: int, seed: int) -> tuple[pl.DataFrame, float]:
    """Return the shares of verdicts by rule, with COLUMNS, and of ledgers with any false one.

    `false`: of verdicts at the threshold, `no`: of these the refutations; `right` and `wrong`: of
    verdicts away from it.
    """
    chance = np.random.default_rng((seed, trials))
    counted = {name: dict.fromkeys(("false", "no", "right", "wrong"), 0) for name in RULES}
    any_false = 0
    for _ in range(ledgers):
        at_threshold = planted(chance, trials, 1)
        errors = [judging.error(judged) for judged in at_threshold.values()]
        marks = trial_tests.marks(errors)
        stand = (error is not None and not mark for error, mark in zip(errors, marks))
        any_false += any(stand)
        above = bool(chance.integers(2))
        away = planted(chance, trials, AWAY if above else 1 / AWAY)
        for name in RULES:
            verdict = at_threshold[name].verdict
            counted[name]["false"] += verdict in judging.DECIDED
            counted[name]["no"] += verdict == NOT
            true = NOT if above == (name == "within") else REPLICATED
            if away[name].verdict in judging.DECIDED:
                counted[name]["right" if away[name].verdict == true else "wrong"] += 1
    rows = [
        {"rule": name, "trials": trials} | {key: n / ledgers for key, n in counts.items()}
        for name, counts in counted.items()
    ]
    return pl.DataFrame(rows, schema=COLUMNS), any_false / ledgers


def main() -> int:
    """Simulate, and print a line for each rule and number of trials."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ledgers", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=2009)
    given = parser.parse_args()
    began = time.monotonic()
    print("rule, trials: false verdicts at the threshold (refutations); away: right, wrong")
    for trials in TRIALS:
        shares, any_false = simulated(given.ledgers, trials, given.seed)
        for row in shares.iter_rows(named=True):
            print(
                f"{row['rule']}, {trials}: {100 * row['false']:.2f} % ({100 * row['no']:.2f} %); "
                f"{100 * row['right']:.1f} %, {100 * row['wrong']:.2f} %"
            )
        print(f"any, {trials}: {100 * any_false:.2f} %")
    took_s = time.monotonic() - began
    print(f"{given.ledgers} ledgers each, {took_s:.0f} s, load average {os.getloadavg()[0]:.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
