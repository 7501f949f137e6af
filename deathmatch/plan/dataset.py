"""A dataset: how much of each experiment to measure, one file `config/datasets/<name>.toml`."""

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from deathmatch.plan.spec import AS_WRITTEN, DISTINCT, FactorLevel, Many, NamedSpec, Spec

# The tables of each experiment of a dataset; deathmatch/data/tables.py has their schemas.
TABLES = ("trials", "points", "times", "samples", "seconds")
# An experiment whose trials search for a capacity has this table too.
PROBES = "probes"
EVERY_TABLE = (*TABLES, PROBES)

# What a dataset may say of an experiment's trials beyond what it must (`Experiment.steps`).
OPTIONS = ("warm_up_rate_rps", "warm_up_s", "cool_down_s", "keep_events")

# Sooner, most of what an overload is to lose still waits in a queue: it looks answered.
OVERLOAD_TIMEOUTS = 2
# The shortest point in seconds, unless it is an overload or the source has its own duration.
LEAST_POINT_S = 5

Rate = Annotated[int, Field(ge=0, le=1_000_000)]
Rates = Annotated[Many[Rate], Field(min_length=1), *DISTINCT] | None
Duration = Annotated[float, Field(gt=0, le=3600), AS_WRITTEN] | None
Trials = Annotated[int, Field(ge=1, le=1000)] | None
Share = Annotated[float, Field(ge=0, le=1), AS_WRITTEN] | None
Levels = Annotated[
    Literal["all"] | Annotated[Many[FactorLevel], Field(min_length=1)],
    Field(description="A factor's levels as a list, or \"all\" for every level that the server "
          "knows."),
]  # fmt: skip


def least_overload_s(load: Mapping[str, Any]) -> float:
    """Return how long an overload must last, in seconds, given an experiment's `load`.

    A load that opens no connections has none that could wait until the time-out.
    """
    opens = "requests_per_connection" in load
    return OVERLOAD_TIMEOUTS * load["timeout_s"] if opens else LEAST_POINT_S


class Grid(Spec):
    """Variants: the product of the levels of each factor that it names, for each server."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Levels]

    servers: Many[str] | None = Field(None, min_length=1)
    """Only these servers; default: all that serve the experiment, except those with a build of
    minutes."""
    omit: Many[str] = Field((), min_length=1)
    """Every server but these, so that a new one is in."""
    trials: Trials = None
    """Fresh starts of each variant, where they differ from the experiment's."""
    rates_rps: Rates = None
    """Rates of its own in place of the experiment's, for servers that reach their limit sooner or
    later than the others."""
    duration_s: Duration = None
    """How long each rate is offered, where it differs from the experiment's."""

    @property
    def own(self) -> dict[str, Any]:
        """What it says in place of the experiment's part of the dataset."""
        return self.model_dump(include={"trials", "rates_rps", "duration_s"}, exclude_none=True)

    @property
    def levels(self) -> dict[str, tuple[FactorLevel, ...] | Literal["all"]]:
        """The levels of the factors that it names."""
        return self.model_extra


class Search(Spec):
    """A search for each server's capacity, which a trial runs after its sweep."""

    servers: Many[str] | None = Field(None, min_length=1)
    """Only of these servers; default: all."""
    probe_s: Annotated[float, Field(ge=0.5, le=60), AS_WRITTEN] = 2
    """How long a rate is offered in each of the trials that decide; half as long where they are
    only looked for."""
    probes: int = Field(24, ge=12, le=200)
    """How many up-and-down trials decide; their spread gives the interval."""
    margin: Annotated[float, Field(ge=1.02, le=1.5), AS_WRITTEN] = 1.08
    """How far below a rate in time and above one that is over, as a ratio, the two rates are that
    are offered again before and after: wider, and other load that takes less goes unseen; narrower,
    and what the machine itself wanders by is taken for it."""
    most_rps: int = Field(100_000, ge=1000, le=1_000_000)
    """The highest rate that is offered, in requests per second. A search that gets there is
    refused: only a client's own limit says that a server may do more."""
    most_s: Annotated[float, Field(ge=10, le=3600), AS_WRITTEN] | None = None
    """After how many seconds a search is refused; default: never."""
    cost_shares: Many[Annotated[float, Field(gt=0, le=1), AS_WRITTEN]] = (0.1, 0.5, 0.9)
    """Which shares of a capacity that was found are offered at the end, for what a reply costs the
    server there."""
    cost_s: Annotated[float, Field(ge=0.5, le=60), AS_WRITTEN] | None = None
    """How long each of them is offered; default: `probe_s`."""
    overload_shares: Many[Annotated[float, Field(gt=1, le=10), AS_WRITTEN]] = ()
    """Which multiples of a capacity that was found are offered last, as an overload, from a fresh
    start with the variant's own listen backlog and the experiment's time-out. Where they are set,
    every variant is searched, and only by the load generator roundtrip: it holds the connections of
    an overload by several processes; default: none."""
    overload_s: Annotated[float, Field(gt=0, le=600), AS_WRITTEN] | None = None
    """How long each of them is offered, at least twice the experiment's time-out: in less time an
    overload looks answered; default: twice the time-out."""


class ExperimentPlan(Spec):
    """An experiment's part of a dataset: its variants, and what each trial goes through."""

    rates_rps: Rates = None
    """Offered rates in requests per second, in the order they are offered; 0 is a closed loop, for
    the client roundtrip."""
    messages: Many[Annotated[int, Field(ge=1, le=10_000_000)]] | None = Field(None, min_length=1)
    """Messages held in all, step by step, for an experiment that measures storage."""
    trials: Trials = None
    """Fresh starts of each variant, where they differ from the dataset's."""
    duration_s: Duration = None
    """How long each rate is offered."""
    warm_up_rate_rps: int | None = Field(None, ge=1)
    """Offered before the first rate, in requests per second; default: 500."""
    warm_up_s: Annotated[float, Field(gt=0, le=3600), AS_WRITTEN] | None = None
    """How long; default: 1."""
    cool_down_s: Annotated[float, Field(ge=0, le=3600), AS_WRITTEN] | None = None
    """How long the machine rests after a trial; default: 0."""
    keep_events: bool | None = None
    """Keep the client's record of each message; without, histograms of each second, of times to
    four digits; for wsload."""
    step_s: Annotated[float, Field(ge=0, le=1), AS_WRITTEN] | None = None
    """The pace of wsload, in place of the experiment's: what is due in such a step is sent
    together, and what came is read; 0: each message when it is due."""
    search: Search | None = None
    """Search for each server's capacity after the sweep of every trial, from a fresh start with the
    deepest listen backlog that experiment and server know; `{}` for the usual search, some 80
    seconds of load. Only for variants with the default backlog and kernel settings, since the
    others would search for the same; default: do not."""
    grids: Many[Grid] = Field(min_length=1)
    """The variants are the union of the grids, each the product of its factors' levels; one that
    several grids have is of the first."""

    @cached_property
    def as_written(self) -> dict[str, Any]:
        """The keys that the file gives it, without its grids."""
        return self.model_dump(exclude_unset=True, exclude={"grids"})

    def with_grid(self, grid: Grid) -> Self:
        """Return the plan of a grid's variants, with the keys that the grid sets."""
        if not grid.own:
            return self
        written = self.model_fields_set | grid.own.keys()
        return self.model_construct(written, **{**dict(self), **grid.own})


class Sitting(Spec):
    """What one machine measures without a break: an experiment, or whole rounds of one."""

    name: str = Field(pattern=r"^[A-Za-z0-9][\w-]*$")
    """Its name, as `sitting=` of snakemake takes it."""
    experiment: str
    """An experiment of the dataset."""
    rounds: Annotated[Many[int], Field(min_length=1), *DISTINCT] | None = None
    """The first and the last round, or a list of one or of more than two; default: all. A round is
    a trial of each variant: those with the same number."""

    def among(self, rounds: int) -> tuple[int, ...]:
        """Return the numbers of its rounds, of an experiment that has so many."""
        given = self.rounds or (1, rounds)
        return tuple(range(given[0], given[1] + 1)) if len(given) == 2 else given


class Refusal(Spec):
    """The most that a sitting may have of what distorts it; with more, it is refused."""

    other_load: Share = None
    """The share of its points that other load limits."""
    stolen: Share = None
    """The share of the machine's CPU time that the hypervisor took while rates were offered."""
    null_drift: Share = None
    """By which share the CPU time for each reply differs between the first and the last third of
    the rounds, as the median over all servers and loads, the null server's among them; in a sitting
    of one round, from the sittings of the experiment before it on the same kind of CPU."""


class Dataset(NamedSpec):
    """A named set of trials: how much of each experiment to measure."""

    title: str
    """What the dataset is for."""
    trials: int = Field(ge=1, le=1000)
    """Fresh starts of each variant."""
    remark: str | None = None
    """What a reader must know of how it was measured, in sentences; the paper's method says it."""
    frozen: bool = False
    """Measured before and kept in git: its tables are read, never made again."""
    frozen_rules: bool = False
    """Claims, findings, margins and this file are those of data/published/frozen.toml, which is
    older than the first trial: with others there is no ledger."""
    also: Many[str] = Field((), min_length=1)
    """Datasets with experiments that this one lacks, or with the searches of such an experiment,
    whose chapters its paper and explorer show once they are measured; the claims are decided
    without them."""
    decided_by: Many[str] = Field((), min_length=1)
    """Measured datasets that decide claims of this one, in the paper and the explorer:
    data/published/decided.toml says which decides what."""
    waives: dict[str, Annotated[str, Field(min_length=10)]] = Field(default_factory=dict)
    """Rules of `check --strict` that its measurements break, each with the reason why they are
    shown all the same; the report prints both."""
    seed: int
    """Seeds the order of trials."""
    experiments: dict[str, ExperimentPlan]
    """Each experiment's part of the dataset."""
    sittings: Many[Sitting] = Field((), min_length=1)
    """The parts in which it is measured, each on one machine, in their order; each round of each
    experiment is in one of them. Its claims are decided once all are measured."""
    refuse: Refusal | None = None
    """For what a sitting is refused and repeated."""
    stop_after_h: Annotated[float, Field(gt=0), AS_WRITTEN] | None = None
    """After how many measured hours, refused sittings included, what there is counts as complete;
    default: never."""

    @model_validator(mode="after")
    def _each_round_in_one_sitting(self) -> Self:
        names = [sitting.name for sitting in self.sittings]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"two sittings have the name {twice!r}")
        seen: dict[tuple[str, int], str] = {}
        for sitting in self.sittings:
            name = sitting.experiment
            if name not in self.experiments:
                what = f"sitting {sitting.name!r}: the dataset has no experiment {name!r}"
                raise ValueError(f"{what}; it has {', '.join(self.experiments)}")
            for n in sitting.among(self.rounds(name)):
                if n not in range(1, self.rounds(name) + 1):
                    what = f"sitting {sitting.name!r}: {name} has rounds 1 to {self.rounds(name)}"
                    raise ValueError(f"{what}, and no round {n}")
                if other := seen.get((name, n)):
                    both = f"{other!r} and in {sitting.name!r}"
                    raise ValueError(f"round {n} of {name} is in two sittings, in {both}")
                seen[name, n] = sitting.name
        for name in self.experiments if self.sittings else ():
            for n in range(1, self.rounds(name) + 1):
                if (name, n) not in seen:
                    raise ValueError(f"round {n} of {name} is in no sitting")
        return self

    @cached_property
    def _sittings(self) -> dict[tuple[str, int], str]:
        return {
            (sitting.experiment, n): sitting.name
            for sitting in self.sittings
            for n in sitting.among(self.rounds(sitting.experiment))
        }

    def sitting_of(self, experiment: str, n: int) -> str | None:
        """Return the name of the sitting that has a round of an experiment; None without one."""
        return self._sittings.get((experiment, n))

    def rounds(self, experiment: str) -> int:
        """Return how many rounds an experiment has: the most fresh starts of a variant."""
        plan = self.experiments[experiment]
        return max(self.repetitions(plan.with_grid(grid)) for grid in plan.grids)

    def tables(self, experiment: str) -> tuple[str, ...]:
        """Return the names of the experiment's tables: `probes` only where there is a search."""
        plan = self.experiments.get(experiment)
        return EVERY_TABLE if plan and plan.search else TABLES

    def repetitions(self, plan: ExperimentPlan) -> int:
        """Return how many fresh starts each variant of the plan has."""
        return plan.trials or self.trials
