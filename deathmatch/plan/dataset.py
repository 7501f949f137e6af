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

# The optional keys of an experiment's trials; `Experiment.steps` names those that are required.
OPTIONS = ("warm_up_rate_rps", "warm_up_s", "cool_down_s")

# In less time an overload looks answered: most connections that it will lose still wait in a queue.
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

    A load that opens no connections has none that wait until the time-out.
    """
    opens = "requests_per_connection" in load
    return OVERLOAD_TIMEOUTS * load["timeout_s"] if opens else LEAST_POINT_S


class Grid(Spec):
    """Variants: the product of the levels of each factor that it names, for each server."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Levels]

    servers: Many[str] | None = Field(None, min_length=1)
    """Only these servers; default: all that serve the experiment, except those whose build takes
    minutes."""
    omit: Many[str] = Field((), min_length=1)
    """All servers except these; a new server is then included."""
    trials: Trials = None
    """Fresh starts of each variant; default: the experiment's."""
    rates_rps: Rates = None
    """Offered rates, for servers that reach their limit sooner or later than the others; default:
    the experiment's."""
    duration_s: Duration = None
    """How long each rate is offered, in seconds; default: the experiment's."""

    @property
    def own(self) -> dict[str, Any]:
        """Its keys that replace those of the experiment's part of the dataset."""
        return self.model_dump(include={"trials", "rates_rps", "duration_s"}, exclude_none=True)

    @property
    def levels(self) -> dict[str, tuple[FactorLevel, ...] | Literal["all"]]:
        """The levels of the factors that it names."""
        return self.model_extra


class Search(Spec):
    """A search for each server's capacity, which a trial runs after its sweep."""

    servers: Many[str] | None = Field(None, min_length=1)
    """Only for these servers; default: all."""
    probe_s: Annotated[float, Field(ge=0.5, le=60), AS_WRITTEN] = 2
    """How long each up-and-down trial offers its rate, in seconds; the probes that bracket the
    capacity before them take half as long."""
    probes: int = Field(24, ge=12, le=200)
    """The number of up-and-down trials, which give the capacity and its interval."""
    margin: Annotated[float, Field(ge=1.02, le=1.5), AS_WRITTEN] = 1.08
    """The ratio between the bracket and the two rates below and above it that are offered before
    and after the up-and-down trials, to detect other load: a wider margin misses weaker load, a
    narrower one takes the machine's own drift for it."""
    most_rps: int = Field(100_000, ge=1000, le=1_000_000)
    """The highest rate that is offered, in requests per second. A search that reaches it without
    finding the capacity is refused."""
    most_s: Annotated[float, Field(ge=10, le=3600), AS_WRITTEN] | None = None
    """The time in seconds after which a search is refused; default: none."""
    cost_shares: Many[Annotated[float, Field(gt=0, le=1), AS_WRITTEN]] = (0.1, 0.5, 0.9)
    """Shares of a capacity that was found, offered at the end to measure what a reply costs the
    server there."""
    cost_s: Annotated[float, Field(ge=0.5, le=60), AS_WRITTEN] | None = None
    """How long each of these shares is offered, in seconds; default: `probe_s`."""
    overload_shares: Many[Annotated[float, Field(gt=1, le=10), AS_WRITTEN]] = ()
    """Multiples of a capacity that was found, offered last, as an overload, after a fresh start
    with the variant's own listen backlog and the experiment's time-out. With this key every variant
    is searched, but only by the load generator roundtrip, several processes of which hold the
    connections of an overload; default: none."""
    overload_s: Annotated[float, Field(gt=0, le=600), AS_WRITTEN] | None = None
    """How long each overload is offered, in seconds: at least twice the experiment's time-out, as
    it looks answered in less time; default: twice the time-out."""


class ExperimentPlan(Spec):
    """An experiment's part of a dataset: its variants, and the steps of each trial."""

    rates_rps: Rates = None
    """Offered rates in requests per second, in the order they are offered; 0 is a closed loop, for
    the client roundtrip."""
    messages: Many[Annotated[int, Field(ge=1, le=10_000_000)]] | None = Field(None, min_length=1)
    """The total number of messages held at each step, for an experiment that measures storage."""
    trials: Trials = None
    """Fresh starts of each variant; default: the dataset's."""
    duration_s: Duration = None
    """How long each rate is offered, in seconds."""
    warm_up_rate_rps: int | None = Field(None, ge=1)
    """The rate of the warm-up before the first rate, in requests per second; default: 500."""
    warm_up_s: Annotated[float, Field(gt=0, le=3600), AS_WRITTEN] | None = None
    """How long the warm-up takes, in seconds; default: 1."""
    cool_down_s: Annotated[float, Field(ge=0, le=3600), AS_WRITTEN] | None = None
    """How long the machine rests after a trial, in seconds; default: 0."""
    step_s: Annotated[float, Field(ge=0, le=1), AS_WRITTEN] | None = None
    """The pace of wsload, in seconds, in place of the experiment's: once in each such step it sends
    the messages that are due and reads what has come; 0: it sends each message when it is due."""
    search: Search | None = None
    """Search for each server's capacity after the sweep of every trial, after a fresh start with
    the deepest listen backlog that experiment and server know; `{}` for the usual search, some 80
    seconds of load. Only variants with the default backlog and kernel settings are searched, since
    the others would have the same capacity; default: no search."""
    grids: Many[Grid] = Field(min_length=1)
    """The variants are the union of the grids, each the product of its factors' levels; a variant
    of several grids takes the keys of the first."""

    @cached_property
    def as_written(self) -> dict[str, Any]:
        """The keys that are set in the file, without its grids."""
        return self.model_dump(exclude_unset=True, exclude={"grids"})

    def with_grid(self, grid: Grid) -> Self:
        """Return the plan of a grid's variants, with the keys that the grid sets."""
        if not grid.own:
            return self
        written = self.model_fields_set | grid.own.keys()
        return self.model_construct(written, **{**dict(self), **grid.own})


class Sitting(Spec):
    """A part that one machine measures without a break: an experiment, or whole rounds of one."""

    name: str = Field(pattern=r"^[A-Za-z0-9][\w-]*$")
    """Its name, for `sitting=` of snakemake."""
    experiment: str
    """An experiment of the dataset."""
    rounds: Annotated[Many[int], Field(min_length=1), *DISTINCT] | None = None
    """The first and the last round, or a list of one or of more than two; default: all. A round is
    a trial of each variant: those with the same number."""

    def among(self, rounds: int) -> tuple[int, ...]:
        """Return the numbers of its rounds, given the number of the experiment's rounds."""
        given = self.rounds or (1, rounds)
        return tuple(range(given[0], given[1] + 1)) if len(given) == 2 else given


class Refusal(Spec):
    """The bounds above which a sitting is refused, as its numbers are distorted."""

    other_load: Share = None
    """The share of its points that other load limits."""
    stolen: Share = None
    """The share of the machine's CPU time that the hypervisor took while rates were offered."""
    null_drift: Share = None
    """The share by which the CPU time for each reply changes from the first to the last third of
    the rounds, as the median over all servers and loads, those of the null server included; in a
    sitting of one round, from the experiment's earlier sittings on the same kind of CPU."""


class Dataset(NamedSpec):
    """A named set of trials: how much of each experiment to measure."""

    title: str
    """What the dataset is for."""
    trials: int = Field(ge=1, le=1000)
    """Fresh starts of each variant."""
    remark: str | None = None
    """What a reader must know about how it was measured, in sentences, for the paper's method."""
    frozen: bool = False
    """It is measured and kept in git: its tables are read, never made again."""
    frozen_rules: bool = False
    """Claims, findings, margins and this file must be those of data/published/frozen.toml, which is
    older than the first trial; otherwise no ledger is made."""
    waives: dict[str, Annotated[str, Field(min_length=10)]] = Field(default_factory=dict)
    """Rules of `check --strict` that its measurements break, each with the reason why they are
    shown nevertheless; the report prints both."""
    seed: int
    """The seed of the order of trials."""
    experiments: dict[str, ExperimentPlan]
    """Each experiment's part of the dataset."""
    sittings: Many[Sitting] = Field((), min_length=1)
    """The parts in which it is measured, each on one machine, in their order; each round of each
    experiment is in exactly one. Its claims are decided once all are measured."""
    refuse: Refusal | None = None
    """The bounds above which a sitting is refused and repeated."""
    stop_after_h: Annotated[float, Field(gt=0), AS_WRITTEN] | None = None
    """The measured hours, refused sittings included, after which the dataset counts as complete;
    default: none."""

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
        """Return the number of an experiment's rounds: the most fresh starts of a variant."""
        plan = self.experiments[experiment]
        return max(self.repetitions(plan.with_grid(grid)) for grid in plan.grids)

    def tables(self, experiment: str) -> tuple[str, ...]:
        """Return the names of the experiment's tables: `probes` only where there is a search."""
        plan = self.experiments.get(experiment)
        return EVERY_TABLE if plan and plan.search else TABLES

    def repetitions(self, plan: ExperimentPlan) -> int:
        """Return the number of fresh starts of each variant of the plan."""
        return plan.trials or self.trials
