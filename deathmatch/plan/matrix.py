"""The matrix of a dataset's trials: servers, variants and repetitions, in running order."""

import itertools
import random
from collections.abc import Collection, Iterable
from pathlib import Path

from deathmatch.errors import UserError, suggestions
from deathmatch.load import registry
from deathmatch.load.registry import FACTOR
from deathmatch.plan import files, paths
from deathmatch.plan.dataset import Dataset, ExperimentPlan, Grid, least_overload_s
from deathmatch.plan.experiment import Experiment, Factor
from deathmatch.plan.server import Server
from deathmatch.plan.spec import Level
from deathmatch.plan.trial import CONFIGURATION, Trial, Variant
from deathmatch.plan.validation_errors import Key


def trials(
    dataset: str,
    servers: Collection[str] | None = None,
    experiments: Collection[str] | None = None,
) -> list[Trial]:
    """Return the dataset's trials in the order in which they run.

    Each repetition visits every variant once, in an order drawn from the dataset's seed, so
    that drift of the machine falls on all variants alike. `servers` and `experiments` narrow the
    choice; but a server that is named is measured in each experiment that it serves, with its
    defaults where the dataset's grids have no variant of it. Raises UserError for names, factors
    or levels that do not exist.
    """
    spec = files.dataset(dataset)
    for kind, chosen in (("server", servers), ("experiment", experiments)):
        for name in chosen or []:
            files.load(kind, name)
    # Read once, since this opens the file of every server.
    every = files.servers()
    cells = [
        (experiment, own, server, variant)
        for name, plan in spec.experiments.items()
        if experiments is None or name in experiments
        for experiment in [_experiment(spec, name, plan, every)]
        for server, variant, own in _chosen(spec, experiment, plan, servers, every)
    ]
    counts = [spec.repetitions(plan) for _, plan, _, _ in cells]
    ordered = []
    for n in range(1, max(counts, default=0) + 1):
        block = [
            Trial(dataset=dataset, experiment=e, plan=p, server=s, variant=v, n=n)
            for (e, p, s, v), count in zip(cells, counts, strict=True)
            if n <= count
        ]
        ordered += sorted(block, key=lambda trial: _drawn(trial, spec.seed))
    # One sitting after the other.
    places = {sitting.name: place for place, sitting in enumerate(spec.sittings)}
    return sorted(ordered, key=lambda t: places.get(spec.sitting_of(t.experiment.name, t.n), 0))


def _drawn(trial: Trial, seed: int) -> float:
    """Return a trial's random place in its block, between 0 and 1.

    It depends on no other trial, so that a part of a dataset has the order of the whole.
    """
    variant = f"{trial.experiment.name}/{trial.server.name}/{trial.variant.name}"
    return random.Random(f"{seed}/{trial.n}/{variant}").random()


def possible(dataset: str, experiments: Collection[str] | None = None) -> list[Trial]:
    """Return every trial that the dataset can hold: its own, and those of any named server."""
    return trials(dataset, files.names("server"), experiments)


def serving(
    experiment: str, slow: bool = True, every: Iterable[Server] | None = None
) -> list[Server]:
    """Return the servers that serve the experiment and can run, by name.

    With `slow` false, without those whose build takes minutes. `every` has the servers to choose
    from; default: all.
    """
    return [
        server
        for server in (files.servers() if every is None else every)
        if experiment in server.experiments and server.runs and (slow or not server.slow_build)
    ]


def find(path: str | Path) -> Trial:
    """Return the trial that a path such as `data/quick/backlog/null/backlog=5/1` names.

    It reads no other server's file, which might be broken. Raises UserError if there is no such
    dataset, experiment, server, factor or level.
    """
    name, parts = paths.split(Path(path))
    if len(parts) != 4 or Path(path).parts[0] != "data" or not parts[3].isdecimal():
        raise UserError(
            f"{path} names no trial",
            remedy="a trial is data/<dataset>/<experiment>/<server>/<variant>/<n>",
        )
    server, experiment, dataset = (
        files.server(parts[1]), files.experiment(parts[0]), files.dataset(name)
    )  # fmt: skip
    if experiment.name not in dataset.experiments:
        raise UserError(
            f"dataset {dataset.name!r} has no experiment {experiment.name!r}",
            remedy="`snakemake -n` lists what it has",
        )
    levels = {name: levels_of(experiment, name, [server]) for name in _factors(experiment)}
    variants = product(experiment, levels, server)
    variant = next((each for each in variants if each.name == parts[2]), None)
    if variant is None:
        own = ", ".join(product(experiment, {}, server)[0].factors)
        raise UserError(
            f"dataset {dataset.name!r} has no trial {'/'.join(parts)}",
            remedy=f"the factors of {experiment.name!r} for this server, in this order: {own}",
        )
    plan = dataset.experiments[experiment.name]
    grids = (grid for grid in plan.grids if _holds(grid, experiment, server, variant))
    return Trial(
        dataset=dataset.name, experiment=experiment, server=server, variant=variant,
        plan=next((plan.with_grid(grid) for grid in grids), plan), n=int(parts[3]),
    )  # fmt: skip


def _experiment(
    dataset: Dataset, name: str, plan: ExperimentPlan, every: list[Server]
) -> Experiment:
    """Return an experiment of the dataset; UserError if a key of its plan is missing or no use."""
    _check_known(dataset, ["experiments", name], "experiment", name)
    experiment = files.experiment(name)
    for key in experiment.steps:
        if getattr(plan, key) is None:
            remedy = (
                f"the client of {name!r} needs it"
                if experiment.client
                else f"{name!r} measures {experiment.measures}, which needs it"
            )
            raise _mistake(dataset, ["experiments", name, key], "this key is missing", remedy)
    _check_closed_loop(dataset, experiment, plan)
    client = experiment.client and registry.client(experiment.client)
    if plan.step_s is not None and not (client and "step_s" in client.load):
        what = f"the client of {name!r} sends nothing in steps"
        raise _mistake(dataset, ["experiments", name, "step_s"], what, "take it out")
    if plan.search is not None and not (client and client.searches):
        what = f"{name!r} offers no rate, so that no capacity can be searched for"
        remedy = "take it out; the clients httperf and roundtrip offer rates"
        raise _mistake(dataset, ["experiments", name, "search"], what, remedy)
    if plan.search is not None and plan.search.overload_shares:
        _check_overload(dataset, experiment, plan)
    if plan.search is not None and plan.search.servers:
        key = ["experiments", name, "search", "servers"]
        _check_served(dataset, experiment, plan.search.servers, key, every)
    return experiment


def _check_closed_loop(dataset: Dataset, experiment: Experiment, plan: ExperimentPlan) -> None:
    """Raise UserError for a rate of 0 where the client has no closed loop."""
    if experiment.client is None or registry.client(experiment.client).closed_loop:
        return
    name = ["experiments", experiment.name]
    keys = [name, *([*name, "grids", index] for index in range(len(plan.grids)))]
    for key, part in zip(keys, [plan, *plan.grids], strict=True):
        if 0 in (part.rates_rps or ()):
            what = f"a rate of 0 is a closed loop, and the client {experiment.client} has none"
            raise _mistake(dataset, [*key, "rates_rps"], what, "offer 1 request a second or more")


def _check_overload(dataset: Dataset, experiment: Experiment, plan: ExperimentPlan) -> None:
    """Raise UserError for an overload that is too short or that no load generator offers."""
    name, asked = experiment.name, plan.search
    least_s = least_overload_s(experiment.load_as_written)
    if asked.overload_s is not None and asked.overload_s < least_s:
        key = ["experiments", name, "search", "overload_s"]
        what = f"in {asked.overload_s:g} s an overload looks answered: connections wait until the "
        what += f"time-out of {experiment.load.timeout_s:g} s"
        raise _mistake(dataset, key, what, f"set {least_s:g} or more, or leave it out")
    named = [grid.levels.get(FACTOR, (experiment.client,)) for grid in plan.grids]
    if not any(levels == "all" or registry.LIGHT in levels for levels in named):
        key = ["experiments", name, "search", "overload_shares"]
        what = f"no grid has the load generator that offers an overload, {registry.LIGHT}"
        remedy = f'add a grid with {FACTOR} = ["{registry.LIGHT}"]'
        raise _mistake(dataset, key, what, remedy)


def _chosen(
    dataset: Dataset,
    experiment: Experiment,
    plan: ExperimentPlan,
    servers: Collection[str] | None,
    every: list[Server],
) -> list[tuple[Server, Variant, ExperimentPlan]]:
    """Return the variants of the named servers, or of all if `servers` is None, with their plans.

    They are the union of the plan's grids; a variant takes the keys of the first that has it. A
    named server without a grid has its default variant.
    """
    plans: dict[tuple[Server, Variant], ExperimentPlan] = {}
    for index, grid in enumerate(plan.grids):
        key = ["experiments", experiment.name, "grids", index]
        chosen = _servers(dataset, experiment, grid, key, every)
        levels = _levels(dataset, experiment, grid, chosen, key)
        own = plan.with_grid(grid)
        for server in chosen:
            for variant in product(experiment, levels, server):
                plans.setdefault((server, variant), own)
    if servers is not None:
        planned = {server.name for server, _ in plans}
        plans = {key: own for key, own in plans.items() if key[0].name in servers}
        for server in serving(experiment.name, every=every):
            if server.name in servers and server.name not in planned:
                plans |= {(server, variant): plan for variant in product(experiment, {}, server)}
    return [(server, variant, own) for (server, variant), own in plans.items()]


def _holds(grid: Grid, experiment: Experiment, server: Server, variant: Variant) -> bool:
    """Return whether a grid has the variant of the server, without reading other servers."""
    named = not server.slow_build if grid.servers is None else server.name in grid.servers
    if not named or server.name in grid.omit:
        return False
    levels = {
        name: levels_of(experiment, name, [server]) if levels == "all" else levels
        for name, levels in grid.levels.items()
    }
    return variant in product(experiment, levels, server)


def _servers(
    dataset: Dataset, experiment: Experiment, grid: Grid, key: list, every: list[Server]
) -> list[Server]:
    """Return the servers of a grid."""
    for name in grid.omit:
        _check_known(dataset, [*key, "omit"], "server", name)
    if grid.servers is None:
        quick = serving(experiment.name, slow=False, every=every)
        return [server for server in quick if server.name not in grid.omit]
    able = _check_served(dataset, experiment, grid.servers, [*key, "servers"], every)
    return [able[name] for name in grid.servers if name not in grid.omit]


def _levels(
    dataset: Dataset, experiment: Experiment, grid: Grid, servers: list[Server], key: list
) -> dict[str, tuple[Level, ...]]:
    """Return the levels of each factor that a grid names, "all" spelled out."""
    wanted = {}
    for name, levels in grid.levels.items():
        known = levels_of(experiment, name, servers)
        if not known:
            raise _mistake(
                dataset, [*key, name], f"experiment {experiment.name!r} has no factor {name!r}",
                f"its factors: {', '.join(_factors(experiment))}",
            )  # fmt: skip
        wanted[name] = known if levels == "all" else levels
        for level in wanted[name]:
            if level not in known:
                raise _mistake(
                    dataset, [*key, name], f"factor {name!r} has no level {level!r}",
                    f"its levels: {', '.join(map(str, known))}",
                )  # fmt: skip
    return wanted


def levels_of(experiment: Experiment, factor: str, servers: list[Server]) -> tuple[Level, ...]:
    """Return the levels that a factor has for any of these servers; () if there is no factor."""
    if factor == CONFIGURATION:
        own = (server.configurations_in(experiment.name) for server in servers)
        return tuple(sorted(set(itertools.chain.from_iterable(own))))
    if factor == FACTOR:
        return experiment.load_generators
    spec = experiment.factors.get(factor)
    return spec.levels if spec else ()


def _factors(experiment: Experiment) -> list[str]:
    """Return the names of all factors that a grid of the experiment may name."""
    chosen = [FACTOR] if experiment.load_generators else []
    return [*experiment.factors, CONFIGURATION, *chosen]


def product(
    experiment: Experiment, levels: dict[str, tuple[Level, ...]], server: Server
) -> list[Variant]:
    """Return the combinations of levels of one grid for one server.

    A factor the server lacks is left out; a factor the grid does not name takes its default. The
    factor `load_generator` is left out at its default.
    """
    axes: dict[str, list[Level]] = {}
    if own := server.configurations_in(experiment.name):
        wanted = levels.get(CONFIGURATION, own[:1])
        axes[CONFIGURATION] = [name for name in wanted if name in own]
    for name, factor in experiment.factors.items():
        known = known_levels(factor, server.factors.get(name))
        if known is not None:
            default = factor.default if factor.default in known else known[0]
            wanted = levels.get(name, (default,))
            axes[name] = [level for level in wanted if level in known]
    combined = [
        dict(zip(axes, combination)) for combination in itertools.product(*axes.values())
    ]  # fmt: skip
    default = experiment.client
    named = [
        {} if level == default else {FACTOR: level} for level in levels.get(FACTOR, (default,))
    ]
    return [Variant(factors=factors | own) for own in named for factors in combined]


def known_levels(factor: Factor, able: tuple[Level, ...] | None) -> tuple[Level, ...] | None:
    """Return a server's levels of a factor, given those in its file; None if it lacks it."""
    # Every server has the levels of a factor that the harness itself sets.
    if factor.of_harness:
        return factor.levels
    return None if able is None else able or factor.levels


def _check_known(dataset: Dataset, key: Key, kind: str, name: str) -> None:
    known = files.names(kind)
    if name not in known:
        what = f"there is no {kind} {name!r}"
        raise _mistake(dataset, key, what, suggestions(name, known))


def _check_served(
    dataset: Dataset, experiment: Experiment, names: Iterable[str], key: list, every: list[Server]
) -> dict[str, Server]:
    """Return the experiment's servers by name; UserError if `names` has one that is not there."""
    able = {server.name: server for server in serving(experiment.name, every=every)}
    for name in names:
        if name not in able:
            _check_known(dataset, key, "server", name)
            raise _mistake(
                dataset, key, f"{name!r} does not serve {experiment.name!r}",
                f"add it to experiments in {paths.folder(name)}/server.toml, or leave it out here",
            )  # fmt: skip
    return able


def _mistake(dataset: Dataset, key: Key, what: str, remedy: str) -> UserError:
    return files.mistake("dataset", dataset.name, key, what, remedy)
