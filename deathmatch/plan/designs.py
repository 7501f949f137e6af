"""Designs: what a dataset must measure so that its claims can be decided.

In: the field `design` of claims.toml, and the trials that a dataset plans. Out: which designs the
dataset does not meet, and why.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from deathmatch.load.registry import FACTOR
from deathmatch.plan import files, matrix, schemas, validation_errors
from deathmatch.plan.dataset import Grid
from deathmatch.plan.paths import ROOT
from deathmatch.plan.trial import Trial, Variant

CLAIMS = ROOT / "data" / "published" / "claims.toml"
Ways = dict[tuple[str, str, Variant], dict[str, list[Trial]]]
"""Trials by experiment, server and variant without its load generator; then by variant's name."""


@dataclass(frozen=True)
class Design:
    """A grid of an experiment: what it says is the least that a dataset must have.

    `capacity_shares` are rates as multiples of each server's own capacity; `search`: whether a
    trial searches for that capacity.
    """

    claim: str
    experiment: str
    grid: Grid
    capacity_shares: tuple[float, ...] = ()
    search: bool = False

    @cached_property
    def unknown_levels(self) -> list[str]:
        """The levels and servers that its experiment does not have, as "lookup=proplists"."""
        if absent := [
            name for name in self.grid.servers if not files.path_of("server", name).is_file()
        ]:
            return [f"server={name}" for name in absent]
        experiment = files.experiment(self.experiment)
        servers = [files.server(name) for name in self.grid.servers]
        return [
            f"{name}={level}"
            for name, levels in self.grid.levels.items()
            for level in levels
            if level not in matrix.levels_of(experiment, name, servers)
        ]

    @cached_property
    def variants(self) -> list[tuple[str, Variant]]:
        """Each server with each of its variants; none while a level is unknown."""
        if self.unknown_levels:
            return []
        experiment = files.experiment(self.experiment)
        return [
            (name, variant)
            for name in self.grid.servers
            for variant in matrix.product(experiment, self.grid.levels, files.server(name))
        ]


def designs() -> tuple[Design, ...]:
    """Return the designs of all claims, in the order of claims.toml; UserError if that is wrong."""
    return _designs(CLAIMS, CLAIMS.stat().st_mtime_ns)


@cache
def _designs(file: Path, mtime_ns: int) -> tuple[Design, ...]:
    ledger = validation_errors.parse(file.read_bytes(), file.name)
    schemas.validate("claims", ledger, file.name)
    claims = ledger["claim"]
    return tuple(_design(claim, keys) for claim in claims for keys in claim.get("design", []))


def _design(claim: dict, keys: dict) -> Design:
    own = {"experiment": claim["experiment"]} | {
        key: keys[key] for key in ("experiment", "capacity_shares", "search") if key in keys
    }
    own["capacity_shares"] = tuple(own.get("capacity_shares", ()))
    grid = {key: value for key, value in keys.items() if key not in own}
    return Design(claim["id"], grid=Grid.model_validate(grid), **own)


def unmet(planned: Iterable[Trial]) -> dict[str, str]:
    """Return the claims with a design that these trials do not meet, each with what is lacking."""
    ways = by_variant(planned)
    lacking: dict[str, str] = {}
    for design in designs():
        if why := _lacking(design, ways):
            lacking.setdefault(design.claim, why)
    return lacking


def met(planned: Iterable[Trial]) -> set[str]:
    """Return the claims with a design that these trials meet."""
    return {design.claim for design in designs()} - unmet(planned).keys()


def by_variant(planned: Iterable[Trial]) -> Ways:
    """Return the trials of each variant, by experiment, server and variant, in their order."""
    ways: Ways = {}
    for trial in planned:
        key = (trial.experiment.name, trial.server.name, without_load_generator(trial.variant))
        ways.setdefault(key, {}).setdefault(trial.variant.name, []).append(trial)
    return ways


def without_load_generator(variant: Variant) -> Variant:
    """Return a variant without the load generator, which is no setting of the server's."""
    return Variant(factors={k: v for k, v in variant.factors.items() if k != FACTOR})


def _lacking(design: Design, planned: Ways) -> str:
    """Return what trials lack of a design; empty if nothing."""
    if unknown := design.unknown_levels:
        return f"{design.experiment} has no {unknown[0]}"
    for server, variant in design.variants:
        where = f"{design.experiment} {server} {variant}"
        ways = planned.get((design.experiment, server, variant), {})
        if not ways:
            return f"no {where}"
        counted = [*filter(_is_counted, ways.values())]
        if not counted:
            return f"{where}: only by another load generator than the experiment's own"
        searched = design.search or design.capacity_shares
        longest_first = sorted(ways.values() if searched else counted, key=len, reverse=True)
        loads = [_load_lacking(design.grid, trials) for trials in longest_first]
        if all(loads):
            return f"{where}: {loads[0]}"
        searches = [trial.search for trials in ways.values() for trial in trials if trial.search]
        if design.search and not searches:
            return f"{where}: no search for its capacity"
        if shares := sorted({*design.capacity_shares} - _shares(searches)):
            return f"{where}: not {shares[0]:g} times its capacity"
    return ""


def _is_counted(trials: list[Trial]) -> bool:
    """Return whether rules count the points of a variant's trials: of its own load generator."""
    return FACTOR not in trials[0].variant.factors


def _load_lacking(grid: Grid, trials: list[Trial]) -> str:
    """Return what the trials of a variant lack of a grid's; empty if nothing."""
    if len(trials) < grid.trials:
        return f"{len(trials)} of {grid.trials} trials"
    trial = trials[0]
    if rates := sorted({*(grid.rates_rps or ())} - {*(trial.plan.rates_rps or ())}):
        return f"not {rates[0]} req/s"
    if grid.duration_s and (trial.duration_s or 0) < grid.duration_s:
        return f"{trial.duration_s or 0:g} of {grid.duration_s:g} s"
    return ""


def _shares(searches: list[dict]) -> set[float]:
    """Return the multiples of a server's capacity that its searches offer."""
    keys = ("cost_shares", "overload_shares")
    return {share for search in searches for key in keys for share in search.get(key, ())}
