"""Which verdicts stand when all verdicts of a ledger are tested together.

In: the error of each verdict, as `judging.error` returns it. Out: what each does not survive.
"""

from collections.abc import Sequence

from scipy.stats import false_discovery_control

from deathmatch.analysis.trial_tests import ERROR

HOLM = "fragile (Holm)"
RATE = "fragile (Holm, false discovery rate)"
"""Verdicts that do not stand by one correction, or by both."""


def marks(errors: Sequence[float | None]) -> list[str]:
    """Return for each verdict HOLM, RATE, or "" where it stands by both or decides nothing.

    `errors` are of all verdicts that were tested; None of those that are inconclusive, which count
    as tests. Holm (1979, Scandinavian Journal of Statistics 6) bounds the chance of any false
    verdict in the ledger, Benjamini and Hochberg (1995, Journal of the Royal Statistical Society B
    57) the expected share of false ones among those that decide, both at ERROR.
    """
    if not errors:
        return []
    known = [1.0 if error is None else error for error in errors]
    within_rate = false_discovery_control(known) <= ERROR
    by_error = sorted(range(len(known)), key=known.__getitem__)
    standing = 0
    while standing < len(known) and known[by_error[standing]] <= ERROR / (len(known) - standing):
        standing += 1
    by_holm = set(by_error[:standing])
    return [
        "" if error is None or place in by_holm else HOLM if within_rate[place] else RATE
        for place, error in enumerate(errors)
    ]


def standing(chances: Sequence[float | None]) -> int:
    """Return how many p-values stand by Holm's correction when all are tested together."""
    known = [chance if chance is not None and chance <= ERROR else None for chance in chances]
    return sum(chance is not None and mark == "" for chance, mark in zip(known, marks(known)))
