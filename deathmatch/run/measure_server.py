"""Measure servers, and write their card: `./shell deathmatch measure A [B ...]`.

One server is compared with yardsticks: each round has a trial of each, which offers the same rates
to all and then searches for the server's capacity. Two servers are compared in blocks of four
trials, ABBA or BAAB. With more, the first is compared with the others as with yardsticks.
"""

import argparse
import itertools
import random
import re
import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from deathmatch.data import records
from deathmatch.errors import UserError, as_typed
from deathmatch.plan import files, own_dataset
from deathmatch.plan import measure_design as plan
from deathmatch.plan.measure_design import Side
from deathmatch.plan.trial import Trial
from deathmatch.run import checkout, failures, progress, subcommands

ROUNDS = 3
# With two, an interval has 12.7 standard errors on either side (Student 1908): too wide to use.
LEAST_BLOCKS = 3
SEED = 1
WORSE = 4
"""The exit status if the condition of `--fail-if` holds."""
INTERRUPTED = 130


@dataclass(frozen=True)
class Run:
    """The servers, or their settings, that one call compares, and how."""

    dataset: str
    experiment: str
    sides: tuple[Side, ...]
    pair: bool
    testbed: str
    seed: int

    def rounds(self) -> Iterator[list[tuple[int, Trial]]]:
        """Yield the trials of each round in order, each with the number of its side.

        A round of a pair is a block of four trials; another has a trial of each side's variants.
        """
        variants = [plan.variants(side, self.experiment, not self.pair) for side in self.sides]
        earlier: Counter = Counter()
        for number in itertools.count(1):
            trials = []
            for which in self._order(number):
                server = self.sides[which].server
                for variant in variants[which]:
                    earlier[server, variant] += 1
                    trial = Trial(
                        dataset=self.dataset, experiment=files.experiment(self.experiment),
                        plan=own_dataset.model(self.experiment), server=files.server(server),
                        variant=variant, n=earlier[server, variant],
                    )  # fmt: skip
                    trials.append((which, trial))
            yield trials

    def tidy(self) -> None:
        """Write the tables of the trials so far."""
        subcommands.run("tidy", f"data/{self.dataset}/{self.experiment}")

    def _order(self, number: int) -> list[int]:
        """Return the numbers of the sides in a round's order.

        In the first round of a card, the subject, which is 0, is first.
        """
        if self.pair:
            from deathmatch.analysis import paired

            return [paired.SIDES.index(side) for side in paired.order(self.seed, number)]
        order = random.Random(f"{self.seed}/{number}").sample(
            range(len(self.sides)), len(self.sides)
        )
        return sorted(order, key=bool) if number == 1 else order

    def measure(self, ends: float, most: float) -> tuple[int, int]:
        """Measure rounds while there is time; return how many are complete, and an exit status.

        At least one round, and at most `most`. These end the run: a trial that cannot begin, a
        failed trial of a pair, and a card's subject that could not be measured.
        """
        checkout.make_folders(self.dataset)
        done = 0
        try:
            for number, trials in zip(subcommands.rounds(ends, most), self.rounds()):
                for place, (which, trial) in enumerate(trials, 1):
                    left = max(0, ends - time.monotonic()) / 60
                    of = f"trial {place} of {len(trials)}: {self.sides[which]}"
                    _say(f"round {number}, {of}; {left:.1f} min left")
                    status = subcommands.trial(trial, self.testbed, any_outcome=not self.pair)
                    if status:
                        return done, status
                    if self.pair or which:
                        continue
                    if not failures.measured(records.read(trial.path / "trial.json")):
                        return 1, subcommands.WRONG
                done = number
        except KeyboardInterrupt:
            _say("interrupted: the results of complete rounds follow")
            return done, INTERRUPTED
        return done, 0


def main(given: argparse.Namespace) -> int:
    """Measure the servers of the command line and write the card; return the exit status."""
    named = tuple(map(plan.side, given.servers))
    pair = len(named) == 2
    tolerated = _tolerated(given, pair)
    dataset = plan.dataset_name(named, given.name)
    experiment = plan.experiment(named, given.experiment)
    files.testbed(given.testbed)
    for side in named:
        plan.levels(side, experiment)
    if pair:
        seed = random.SystemRandom().randrange(1, 10**6) if given.seed is None else given.seed
        run = Run(dataset, experiment, named, pair, given.testbed, seed)
        return _compare(run, given, tolerated)
    sides = tuple(dict.fromkeys(named))
    if len({side.server for side in sides}) < len(sides):
        what = "settings of one server are compared two at a time"
        raise UserError(what, remedy=f"choose two: measure {sides[0]} {sides[1]}")
    if len(sides) == 1:
        others = plan.yardsticks(files.server(sides[0].server), experiment, progress.build_s)
        sides += tuple(others)
    seed = SEED if given.seed is None else given.seed
    return _against_yardsticks(Run(dataset, experiment, sides, pair, given.testbed, seed), given)


def _tolerated(given: argparse.Namespace, pair: bool) -> float | None:
    """Return the share in `--fail-if slower-than 5 %`, None without it; UserError if wrong."""
    for option, example, words in (
        ("--statistic", "reply_rate_rps", given.statistic),
        ("--fail-if", "slower-than 5 %", given.fail_if),
    ):
        if words is not None and not pair:
            what, remedy = "the option needs exactly two servers", f"measure A B {option} {example}"
            raise UserError(what, f"option {option}", f"name two: {remedy}")
    if given.fail_if is None:
        return None
    asked = re.fullmatch(r"slower-than (\d+(?:\.\d+)?) ?%", " ".join(given.fail_if))
    if asked is None:
        what = f"{' '.join(given.fail_if)!r} is not a condition"
        raise UserError(what, "option --fail-if", 'write "slower-than 5 %"')
    return float(asked[1]) / 100


def _compare(run: Run, given: argparse.Namespace, tolerated: float | None) -> int:
    """Measure a pair in blocks, at the same rates; return the exit status."""
    from deathmatch.analysis import paired
    from deathmatch.analysis.views import Experiment
    from deathmatch.paper import card

    statistic = given.statistic or paired.STATISTICS[0]
    if statistic not in paired.STATISTICS:
        what = f"{statistic!r} cannot be compared"
        raise UserError(what, "option --statistic", f"choose one of {', '.join(paired.STATISTICS)}")
    model = own_dataset.model(run.experiment)
    rates = tuple(given.rates or model.rates_rps or ())
    duration_s = given.duration or model.duration_s or 0
    _check_time(run, given.minutes, len(rates) * duration_s)
    subcommands.hold()
    subcommands.wait_for_the_machine(_say)
    for server in dict.fromkeys(side.server for side in run.sides):
        subcommands.build(server)
    title = "; ".join(f"{letter}: {side}" for letter, side in zip(paired.SIDES, run.sides))

    def write(blocks: int) -> None:
        trials = 4 // len(set(run.sides)) * blocks
        text = plan.text(
            title, run.experiment, run.sides, rates, duration_s, trials, run.seed, card=False
        )
        own_dataset.write(run.dataset, text)

    write(LEAST_BLOCKS)
    blocks, status = run.measure(time.monotonic() + 60 * given.minutes, float("inf"))
    if not blocks:
        return status
    write(blocks)
    run.tidy()
    held = Experiment(run.dataset, run.experiment)
    measured = [
        paired.Measured(
            number, place, paired.SIDES[which],
            held.points.filter(server=trial.server.name, variant=trial.variant.name, n=trial.n),
        )
        for number, trials in zip(range(1, blocks + 1), run.rounds())
        for place, (which, trial) in enumerate(trials, 1)
    ]  # fmt: skip
    rows = paired.rows(measured, statistic)
    made = card.of_pair(held, run.sides, measured, rows, run.seed, _typed())
    card.show(made, given.json)
    first = rows.row(0, named=True)
    if status == 0 and tolerated is not None and paired.worse_by(first, tolerated):
        _say(f"B is worse than A by more than {tolerated:.0%}")
        return WORSE
    return status


def _check_time(run: Run, minutes: float, offered_s: float) -> None:
    """Raise UserError if the time is too short for LEAST_BLOCKS."""
    around_s = progress.OVERHEAD_S + progress.START_STOP_S
    warm_up_s = max(trial.warm_up_s for _, trial in next(run.rounds()))
    least = LEAST_BLOCKS * 4 * (offered_s + around_s + warm_up_s) / 60
    if minutes < least:
        raise UserError(
            f"{minutes:g} minutes are too few for {LEAST_BLOCKS} blocks of four trials",
            "option --minutes",
            f"set at least {least:.1f}, or use fewer --rates, or a shorter --duration",
        )


def _against_yardsticks(run: Run, given: argparse.Namespace) -> int:
    """Measure a server and yardsticks; return the exit status."""
    subcommands.hold()
    subcommands.wait_for_the_machine(_say)
    ends = time.monotonic() + 60 * given.minutes
    subject, *others = run.sides
    _say(f"{subject} in {run.experiment}, compared with {', '.join(map(str, others))}")
    subcommands.build(subject.server)
    built = [other for other in others if subcommands.run("build", other.server) == 0]
    run = Run(run.dataset, run.experiment, (subject, *built), False, run.testbed, run.seed)
    rates, duration_s = plan.load(run.experiment)
    rates, duration_s = tuple(given.rates or rates), given.duration or duration_s
    title = f"{files.server(subject.server).title}, compared with yardsticks"
    text = plan.text(
        title, run.experiment, run.sides, rates, duration_s, ROUNDS, run.seed, card=True
    )
    own_dataset.write(run.dataset, text)
    rounds, status = run.measure(ends, ROUNDS)
    if status and not rounds:
        return status
    if rounds < ROUNDS and not status:
        _say(f"no time for round {rounds + 1} of {ROUNDS}")
    run.tidy()
    # They take seconds to import: the run begins without them.
    from deathmatch.analysis.card import alarms
    from deathmatch.analysis.views import Experiment
    from deathmatch.paper import card

    held = Experiment(run.dataset, run.experiment)
    made = card.of_subject(held, run.sides, ROUNDS, _typed())
    card.show(made, given.json)
    return status or (subcommands.WRONG if subject.server in alarms(held) else 0)


def _typed() -> str:
    """Return the command that started this process, as a user types it."""
    return as_typed(f"deathmatch {shlex.join(sys.argv[1:])}")


def _say(text: str) -> None:
    print(f"[measure] {text}", file=sys.stderr, flush=True)
