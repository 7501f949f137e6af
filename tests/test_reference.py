"""The plan of the reference has all that claims and findings compare, often enough."""

from functools import cache
from itertools import pairwise

from planned import of_selector

from deathmatch.analysis import findings, published
from deathmatch.analysis.comparison import Comparison, Selector
from deathmatch.analysis.selecting import NEAR_SHARE, divided_selectors
from deathmatch.plan import files, matrix
from deathmatch.plan.dataset import LEAST_POINT_S
from deathmatch.plan.trial import Trial
from deathmatch.quantities.quantity import RATE

DATASET = "reference"
LEAST_TRIALS = 7
# The columns of comparisons that come from a search.
SHARE, CAPACITY = "capacity_share", "capacity_rps"
SLOWER = 0.6
"""The speed of the slower kind of CPU over the faster one, of two that measured before."""


@cache
def planned() -> dict[str, list[Trial]]:
    by_experiment: dict[str, list[Trial]] = {}
    for trial in matrix.trials(DATASET):
        by_experiment.setdefault(trial.experiment.name, []).append(trial)
    return by_experiment


@cache
def compared() -> list[tuple[str, str, Comparison]]:
    """Return name, experiment and comparison of each claim and finding."""
    rows = [
        (claim.id, claim.experiment, one)
        for claim in published.claims()
        for one in (*claim.every, *claim.condition, *claim.condition_then)
    ]
    of_findings = findings.load()
    return rows + [(one.name, one.experiment, part) for one in of_findings
                   for part in one.comparisons]  # fmt: skip


def lacking(experiment: str, comparison: Comparison, selector: Selector) -> str:
    """Return what the plan lacks of a side of a comparison; "" if nothing."""
    own = selector.get("experiment", experiment)
    keys = ("statistic", "experiment", RATE, SHARE)
    levels = {key: level for key, level in selector.items() if key not in keys}
    trials = of_selector(planned().get(own, []), levels)
    if len({trial.n for trial in trials}) < LEAST_TRIALS:
        return f"{len(trials)} trials"
    statistic, share = selector.get("statistic", comparison.statistic), selector.get(SHARE)
    rates = {rate for trial in trials for rate in trial.plan.rates_rps or ()}
    searches = [trial.search for trial in trials if trial.search]
    if statistic == CAPACITY or share:
        if len(searches) < LEAST_TRIALS:
            return f"{len(searches)} searches"
        shares = {*searches[0]["cost_shares"], *searches[0].get("overload_shares", ())}
        if share in shares:
            long_enough = searches[0].get("overload_s" if share > 1 else "cost_s", 0)
            return "" if long_enough >= max(LEAST_POINT_S, comparison.least_s) else "short overload"
        return "" if not share or len(rates) > 1 else f"no rate near {share} of its capacity"
    if RATE in selector and selector[RATE] not in rates:
        return f"not {selector[RATE]} requests/s"
    offered_s = trials[0].duration_s
    if offered_s is not None and offered_s < max(LEAST_POINT_S, comparison.least_s):
        return f"points of {offered_s} s"
    return ""


def test_all_that_is_compared_is_planned():
    known = [
        (name, selector, lacking(experiment, comparison, selector))
        for name, experiment, comparison in compared()
        for side in comparison.sides
        for selector in divided_selectors(side)
    ]
    assert len(known) > 100 and [one for one in known if one[-1]] == []


def test_rates_near_a_share_leave_no_gap_between_two_kinds_of_cpu():
    for name, experiment, comparison in compared():
        for selector in comparison.sides:
            if selector.get(SHARE) not in (0.667, 0.75):
                continue
            levels = {k: v for k, v in selector.items() if k not in ("statistic", SHARE)}
            (trial, *_) = of_selector(planned()[experiment], levels)
            # Every plan has 3,000.
            rates = sorted({*trial.plan.rates_rps} - {3000})
            steps = [after / before for before, after in pairwise(rates)]
            assert all(step <= NEAR_SHARE**2 for step in steps), (name, rates)
            assert rates[0] / NEAR_SHARE <= SLOWER * rates[-1] * NEAR_SHARE, (name, rates)


def test_every_sitting_has_the_null_server_and_one_yardstick():
    """Except where no rate is offered (storage) or a request takes a set time (accept-queue)."""
    for experiment, trials in planned().items():
        rounds = {trial.n for trial in trials}
        servers = {n: {t.server.name for t in trials if t.n == n} for n in rounds}
        if experiment != "storage":
            assert any(name in servers[1] for name in ("null", "ws-null")), experiment
        if experiment not in ("storage", "accept-queue"):
            assert any(name in servers[1] for name in ("tornado", "tornado-ws")), experiment


def test_it_has_every_experiment():
    assert planned().keys() == {*files.names("experiment")}
