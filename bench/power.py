"""What the plan of next/reference can decide: `./shell python bench/power.py`.

It prints for each comparison of a claim or a finding: the spread between trials of the earlier
datasets, the smallest distance from the nearest bound that the planned number of trials detects in
nine of ten cases, the chances that it holds and that it fails if the earlier estimate is the truth,
and how many trials would decide it. The script will be removed when the dataset is measured.
"""

import math
import sys

from scipy.optimize import brentq
from scipy.stats import binom, nct

sys.path += [".", "tests"]

from planned import of_selector

from deathmatch.analysis import comparing, findings, judging, published, trial_tests
from deathmatch.analysis.comparison import Comparison
from deathmatch.analysis.judging import Judgement
from deathmatch.analysis.selecting import OWN, divided_selectors
from deathmatch.analysis.trial_tests import ERROR, SCALES, share_interval
from deathmatch.plan import matrix
from deathmatch.quantities.quantity import Kind

DATASET, BEFORE, POWER, MOST = "next/reference", "reference", 0.9, 200


def main() -> None:
    """Print a line for each comparison, and the claims and findings that the plan leaves open."""
    plan = matrix.trials(DATASET)
    elsewhere, parts = published.deciders(BEFORE), {}
    heads = ("n", "before", "estimate", "spread", "least", "holds", "fails", "needs")
    print(f"{'claim':54}" + "".join(f"{head:>10}" for head in heads))
    for name, when, experiment, new, old in rows():
        planned, family = count(plan, experiment, new), new[1]
        known = before([elsewhere.get(name, BEFORE), *dict.fromkeys(elsewhere.values())], *old, new)
        own = parts.setdefault(f"{name} {when}", [])
        cells = [planned, "no trials of before"]
        if known is None:
            own.append((0.0, 0.0))
        else:
            own.append(power(new[0], known, planned, family))
            enough = (n for n in range(3, MOST) if max(power(new[0], known, n, family)) >= POWER)
            needs = next(enough, f">{MOST}")
            spread = known.spread
            least_text = "" if spread is None else f"{100 * (least(spread, planned) - 1):.1f} %"
            spread_text = "" if spread is None else f"{spread:.3g}"
            chances = [f"{chance:.2f}" for chance in own[-1]]
            cells = [planned, known.interval.trials, f"{known.interval.estimate:.3g}", spread_text,
                     least_text, *chances, needs]  # fmt: skip
        print(f"{name + ' ' + when:54}" + "".join(f"{cell:>10}" for cell in cells))
    left = [name for name, own in parts.items() if decided(own) < POWER]
    print(f"\n{len(left)} of {len(parts)} are not decided in nine of ten cases: {', '.join(left)}")


def decided(parts: list[tuple[float, float]]) -> float:
    """Return the least chance that a claim is decided: all parts hold, or one refutes it."""
    return max(1 - sum(1 - holds for holds, _ in parts), *(fails for _, fails in parts))


def rows() -> list[tuple]:
    """Return name, age, experiment, comparison with its family's size, and old comparison."""
    old = {claim.id: claim for claim in published.claims()}
    made = []
    for claim in published.claims_of(DATASET):
        before_it = old[claim.id]
        for when in ("now",) if claim.same else ("then", "now"):
            new, was = claim.compared(when), before_it.compared(when)
            was = was if len(was) == len(new) else new
            where = claim.experiment, before_it.experiment
            made += [(claim.id, when, where[0], (one, len(new)), (where[1], was[at]))
                     for at, one in enumerate(new) if claim.cpus < 2]  # fmt: skip
    for finding, old_one in zip(findings.load(DATASET), findings.load(), strict=True):
        new, was = finding.comparisons, old_one.comparisons
        was = was if len(was) == len(new) else new
        made += [(finding.name, "finding", finding.experiment, (one, len(new)),
                  (old_one.experiment, was[at]))
                 for at, one in enumerate(new)]  # fmt: skip
    return made


def count(plan: list, experiment: str, new: tuple[Comparison, int]) -> int:
    """Return the number of trials of the side with the fewest."""
    of_experiment = [trial for trial in plan if trial.experiment.name == experiment]
    levels = [{k: v for k, v in one.items() if k not in OWN}
              for side in new[0].sides for one in divided_selectors(side)]  # fmt: skip
    return min(len({t.n for t in of_selector(of_experiment, one)}) for one in levels)


def before(datasets: list[str], experiment: str, old: Comparison, new: tuple) -> Judgement | None:
    """Return the judgement of the new comparison, or of the old one, if trials give one."""
    for compared in (new[0], old):
        for dataset in datasets:
            part = comparing.part(dataset, experiment, compared)
            if all(len(side) >= judging.MINIMUM_TRIALS for side in part.sides):
                known = judging.tested(part)
                if known.interval.estimate is not None:
                    return known
    return None


def least(spread: float, trials: int) -> float:
    """Return the ratio to the bound, above 1, that this number of trials detects with POWER."""
    if trials < 2:
        return math.inf
    return math.exp(spread * brentq(lambda away: above(away, 1, trials, ERROR) - POWER, 0, 50))


def above(away: float, spread: float, trials: int, level: float) -> float:
    """Return the chance that an interval lies wholly on one side of a bound at a distance.

    The noncentral t (Cohen 1988, Statistical Power Analysis, chapter 2).
    """
    needed = trial_tests.half_width(trials, level) * math.sqrt(trials)
    # Beyond, the chance is 1, and scipy's series gives none.
    shift = min(away * math.sqrt(trials) / spread, 2 * needed + 20)
    return float(nct.sf(needed, trials - 1, shift))


def power(compared: Comparison, known: Judgement, trials: int, family: int) -> tuple[float, float]:
    """Return the chances that this number of trials shows that a comparison holds, and that not.

    The truth is taken as the earlier estimate; as a share of trials, it is at most 98 %.
    """
    truth, kinds = known.interval.estimate, compared.quantity and compared.quantity.kind
    if known.as_claimed or kinds == Kind.OUTCOME:
        share = min(max(truth, 0.02), 0.98)
        intervals = [share_interval([1.0] * k + [0.0] * (trials - k), ERROR)
                     for k in range(trials + 1)]  # fmt: skip
        most, fewest = (
            sum(float(binom.pmf(k, trials, share)) for k, one in enumerate(intervals) if apart(one))
            for apart in (lambda one: one.low > 0.5, lambda one: one.high < 0.5)
        )
        upward = known.as_claimed or compared.low == 0.5
        return (most, fewest) if upward else (fewest, most)
    if known.spread is None or trials < judging.MINIMUM_TRIALS:
        return 0.0, 0.0
    forward = SCALES[kinds if kinds in SCALES and compared.b is None else Kind.POSITIVE][0]
    spread, middle = max(known.spread, 1e-6), float(forward(truth))
    low, high = (float(forward(bound)) if 0 < bound < math.inf else math.copysign(math.inf, bound)
                 for bound in (compared.low, compared.high))  # fmt: skip
    inside = [1 - above(away, spread, trials, ERROR) for away in (middle - low, high - middle)
              if away < math.inf]  # fmt: skip
    outside = [above(away, spread, trials, ERROR / family) for away in (low - middle, middle - high)
               if away > -math.inf]  # fmt: skip
    return max(0.0, 1 - sum(inside)), max(outside, default=0.0)


if __name__ == "__main__":
    main()
