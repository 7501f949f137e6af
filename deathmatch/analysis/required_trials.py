"""What it would take to decide a claim that is inconclusive: trials, time, and of which variants.

In: the parts of its rule that are open, as `rules.decide` returns them. Out: `Required`, of the
test and the level by which the part was judged, and of the spread between the trials that there
are. Three trials know a spread badly: its 95 % interval goes from half of it to six times
(chi-squared, two degrees of freedom).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from deathmatch.analysis import published, selecting, trial_tests
from deathmatch.analysis.judging import MINIMUM_TRIALS, Compared, Judgement


@dataclass(frozen=True)
class Required:
    """What deciding an inconclusive verdict takes.

    `detectable`: the ratio to the threshold that its trials could have detected; of shares, of
    their odds. `needed_trials`: of how many trials the ratio measured would be detected, None if
    `trial_tests.MOST_TRIALS` do not. `needed_s`: how long the further trials take, of all that it
    compares. `variants`: what is compared, as folders below the dataset's.
    """

    detectable: float | None = None
    needed_trials: int | None = None
    needed_s: float | None = None
    variants: tuple[str, ...] = ()


NOTHING_REQUIRED = Required()
"""What a verdict takes that is decided."""


def required(dataset: str, parts: Sequence[Judgement]) -> Required:
    """Return what the open parts of a rule take: the part that takes most decides."""
    if not parts:
        return NOTHING_REQUIRED
    wanted = [_needed(part) for part in parts]
    needed = None if None in wanted else max(wanted)
    took_s: dict[str, float] = {}
    for part in parts:
        for compared in part.compared:
            took_s |= _variants(dataset, compared)
    had = min(part.interval.trials for part in parts)
    detectable = [factor for part in parts if (factor := _detectable(part)) is not None]
    needed_s = None if needed is None else (needed - had) * sum(took_s.values())
    return Required(max(detectable, default=None), needed, needed_s, tuple(sorted(took_s)))


def _detectable(part: Judgement) -> float | None:
    trials = part.interval.trials
    if trials < MINIMUM_TRIALS or part.spread is None:
        return None
    return math.exp(trial_tests.detectable(part.spread, trials, part.level))


def _needed(part: Judgement) -> int | None:
    """Return of how many trials the distance measured would be detected."""
    trials = part.interval.trials
    if part.of_trials:
        return trial_tests.needed_of_share(part.interval.estimate, trials, part.level)
    if part.spread is None or part.distance is None:
        return None
    return trial_tests.needed(part.spread, part.distance, trials, MINIMUM_TRIALS, part.level)


def _variants(dataset: str, compared: Compared) -> dict[str, float]:
    """Return the variants that a selector chooses, with the median time of a trial in seconds."""
    experiment = compared.selector.get("experiment", compared.experiment)
    free = published.free(compared.rule)
    took_s = {}
    for plain in selecting.divided_selectors(compared.selector):
        frame = selecting.selected(dataset, experiment, plain, free, selecting.trials)
        if frame is None:
            continue
        for (server, variant), group in frame.group_by("server", "variant", maintain_order=True):
            took_s[f"{experiment}/{server}/{variant}"] = (group["wall_us"].median() or 0) / 1e6
    return took_s
