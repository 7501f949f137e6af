"""Compare two servers, or two settings of one: `./shell deathmatch compare A B`.

Builds both, measures them in blocks of four trials, ABBA or BAAB, until the time is over, and says
what the blocks show. The trials are those of an ordinary dataset.
"""

import argparse
import itertools
import random
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from deathmatch.analysis import paired
from deathmatch.analysis.ab_result import STATISTICS, Measured, worse_by
from deathmatch.data import records, tidy
from deathmatch.errors import UserError
from deathmatch.plan import ab_design as plan
from deathmatch.plan import files, own_dataset
from deathmatch.plan.trial import Trial
from deathmatch.quantities.good_answers import only_good
from deathmatch.run import ab_report, checkout, failures, progress, subcommands

# The interval of two is 12.7 standard errors to either side (Student 1908), and says nothing.
LEAST_BLOCKS = 3
WORSE = 4
"""The exit status where `--fail-if` is so."""


@dataclass(frozen=True)
class Comparison:
    """What is compared, and how."""

    name: str
    """The name of its dataset."""
    sides: tuple[plan.Side, plan.Side]
    experiment: str
    rates_rps: tuple[int, ...]
    duration_s: float
    seed: int

    def write(self, blocks: int) -> None:
        """Write the dataset's file, for a number of blocks."""
        content = plan.text(
            self.sides, self.experiment, self.rates_rps, self.duration_s,
            self._trials_of_a_variant * max(1, blocks), self.seed,
        )  # fmt: skip
        own_dataset.write(self.name, content)

    @property
    def _trials_of_a_variant(self) -> int:
        first, second = self.sides
        return 4 if self._trial(first, 1) == self._trial(second, 1) else 2

    def _trial(self, side: plan.Side, n: int) -> Trial:
        return Trial(
            dataset=self.name, experiment=files.experiment(self.experiment), n=n,
            plan=own_dataset.model(self.experiment), server=files.server(side.server),
            variant=plan.variant(side, self.experiment),
        )  # fmt: skip

    def block(self, number: int) -> list[tuple[str, Trial]]:
        """Return the sides and the trials of a block, in their order; the first block is 1."""
        count, trials = self._trials_of_a_variant, []
        before = dict.fromkeys(paired.SIDES, count * (number - 1))
        for letter in paired.order(self.seed, number):
            side = self.sides[paired.SIDES.index(letter)]
            # A variant against itself: all four are trials of one.
            counted = letter if count == 2 else paired.SIDES[0]
            before[counted] += 1
            trials.append((letter, self._trial(side, before[counted])))
        return trials

    def measured(self) -> Iterator[Measured]:
        """Yield the trials of whole blocks, with their points."""
        for number in itertools.count(1):
            block = self.block(number)
            if not all(_is_measured(trial.path) for _, trial in block):
                return
            for place, (side, trial) in enumerate(block, 1):
                frames = tidy.frames(self.experiment, [trial.path / "trial.json"])
                yield Measured(number, place, side, only_good(frames["points"]))


def main(given: argparse.Namespace) -> int:
    """Compare as the command line says; return the exit status."""
    wanted, tolerated = _wanted(given), _tolerated(given.fail_if)
    subcommands.hold()
    for server in dict.fromkeys(side.server for side in wanted.sides):
        subcommands.build(server)
    wanted.write(LEAST_BLOCKS)
    status = _measure(wanted, given.minutes, given.testbed)
    trials = list(wanted.measured())
    wanted.write(len(trials) // 4)
    if not trials:
        return status
    row = ab_report.show(
        wanted.name, wanted.sides, wanted.experiment, trials, wanted.seed, given.statistic,
        given.json,
    )  # fmt: skip
    if status == 0 and tolerated is not None and worse_by(row, tolerated):
        print(f"[compare] B is worse than A by more than {tolerated:.0%}", file=sys.stderr)
        return WORSE
    return status


def _tolerated(words: Sequence[str] | None) -> float | None:
    """Return the share in `--fail-if slower-than 5 %`, None without it; UserError if wrong."""
    if words is None:
        return None
    asked = re.fullmatch(r"slower-than (\d+(?:\.\d+)?) ?%", " ".join(words))
    if asked is None:
        what = f"{' '.join(words)!r} is no condition"
        raise UserError(what, "option --fail-if", 'write "slower-than 5 %"')
    return float(asked[1]) / 100


def _wanted(given: argparse.Namespace) -> Comparison:
    """Return what the command line asks for; UserError if it cannot be compared."""
    sides = plan.side(given.a), plan.side(given.b)
    experiment = plan.experiment(sides, given.experiment)
    model = own_dataset.model(experiment)
    files.testbed(given.testbed)
    if given.statistic not in STATISTICS:
        what = f"{given.statistic!r} is not compared"
        raise UserError(what, "--statistic", f"choose of {', '.join(STATISTICS)}")
    comparison = Comparison(
        plan.dataset_name(sides, given.name), sides, experiment,
        tuple(given.rates or model.rates_rps or ()), given.duration or model.duration_s or 0,
        random.SystemRandom().randrange(1, 10**6) if given.seed is None else given.seed,
    )  # fmt: skip
    _check_time(comparison, given.minutes)
    return comparison


def _check_time(wanted: Comparison, minutes: float) -> None:
    """Raise UserError if the time is too short for blocks that give an interval."""
    offered_s = len(wanted.rates_rps) * wanted.duration_s
    around_s = progress.OVERHEAD_S + progress.START_STOP_S
    warm_up_s = max(trial.warm_up_s for _, trial in wanted.block(1))
    least = LEAST_BLOCKS * 4 * (offered_s + around_s + warm_up_s) / 60
    if minutes < least:
        raise UserError(
            f"{minutes:g} minutes are too few for {LEAST_BLOCKS} blocks of four trials",
            "--minutes",
            f"give it {least:.1f} at least, fewer --rates, or a shorter --duration",
        )


def _measure(wanted: Comparison, minutes: float, testbed: str) -> int:
    """Measure block after block while another one fits into the time; return the exit status."""
    checkout.make_folders(wanted.name)
    ends = time.monotonic() + 60 * minutes
    try:
        for number in subcommands.rounds(ends):
            for place, (side, trial) in enumerate(wanted.block(number), 1):
                left = subcommands.minutes_left(ends)
                print(f"[compare] block {number}, trial {place} of 4: {side}; {left:.1f} min left",
                      file=sys.stderr, flush=True)  # fmt: skip
                if status := subcommands.run("trial", str(trial.path), "--testbed", testbed):
                    return status
    except KeyboardInterrupt:
        print("[compare] interrupted: what whole blocks show follows", file=sys.stderr)
        return 130
    return 0


def _is_measured(folder: Path) -> bool:
    record = folder / "trial.json"
    return record.exists() and failures.measured(records.read(record))
