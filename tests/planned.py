"""The trials of a plan that a selector of a claim or a finding names."""

from collections.abc import Iterable

from deathmatch.load.registry import FACTOR
from deathmatch.plan.spec import Level
from deathmatch.plan.trial import CONFIGURATION, Trial


def of_selector(planned: Iterable[Trial], levels: dict[str, Level]) -> list[Trial]:
    """Return the trials of a server's variant, of one experiment, that a selector names.

    `levels`: `server`, and those of factors; the others are at their defaults, as in the tables:
    the first configuration, the experiment's default. The load generator may be any.
    """
    return [trial for trial in planned if _is_of(trial, levels)]


def _is_of(trial: Trial, levels: dict[str, Level]) -> bool:
    own = trial.server.configurations_in(trial.experiment.name)
    usual = {name: factor.default for name, factor in trial.experiment.factors.items()}
    wanted = {CONFIGURATION: own[0]} | usual if own else usual
    wanted |= {"server": trial.server.name} | levels
    has = {"server": trial.server.name} | trial.variant.factors
    named = levels.keys() <= has.keys()
    return named and all(wanted[name] == level for name, level in has.items() if name != FACTOR)
