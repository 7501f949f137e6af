"""What `deathmatch measure NAME` measures: a server with its yardsticks, at rates of its own."""

from collections.abc import Callable, Mapping, Sequence

from deathmatch.errors import UserError
from deathmatch.load import registry
from deathmatch.plan import files, matrix, own_dataset
from deathmatch.plan.server import Server

CEILINGS = ("null", "ws-null")
"""Servers that answer at once: what they do is the most that testbed and client carry."""
YARDSTICKS = 2
RECENT_YEARS = 2
"""How much older than the newest release of all a yardstick's may be."""
FIRST_RATES_RPS = (500, 2_000, 8_000)
"""Offered before the search, which begins from the highest of them that is answered."""
SEARCH = {"probe_s": 0.5, "probes": 12, "margin": 1.2, "cost_shares": [0.5]}
SHARES = (0.5, 0.9, 1.3)
"""Which shares of a server's capacity are offered: half, nearly all, and an overload."""
LEAST_S, SHORTEST_S, LONGEST_S = 0.5, 2.0, 10.0
"""How long each rate is offered: least in a single round; shortest and longest in several."""


def experiment(server: Server, wanted: str | None) -> str:
    """Return the experiment in which the server is measured: `wanted`, else its first.

    UserError if the server serves none whose load is a rate.
    """
    able = [
        name for name in server.experiments
        if (client := files.experiment(name).client) and registry.client(client).searches
    ]  # fmt: skip
    if wanted is not None and wanted not in able:
        what = f"servers/{server.name} is not measured by an offered rate in {wanted!r}"
        raise UserError(what, "option --experiment", f"choose of {', '.join(able) or 'none'}")
    if not able:
        raise UserError(
            f"servers/{server.name} serves no experiment whose load is a rate",
            "key experiments", f"it serves {', '.join(server.experiments)}; "
            f"measure those by snakemake --config dataset=smoke servers={server.name}",
        )  # fmt: skip
    return wanted or able[0]


def yardsticks(server: Server, name: str, build_s: Callable[[Server], float]) -> list[Server]:
    """Return whom the server is compared with: the ceiling, and the two that are built soonest.

    One of the server's own language comes before others. `build_s` says how long a build takes.
    """
    others = [other for other in matrix.serving(name, slow=False) if other.name != server.name]
    ceilings = [other for other in others if other.name in CEILINGS]
    years = {other.name: other.release.year for other in others if other.release}
    since = max(filter(None, years.values()), default=0) - RECENT_YEARS
    rest = sorted(
        (
            other
            for other in others
            if (years.get(other.name) or 0) >= since and not other.instrument
        ),
        key=lambda other: (build_s(other), other.name),
    )
    own = [other for other in rest if other.language == server.language][:1]
    return ceilings + (own + [other for other in rest if other not in own])[:YARDSTICKS]


def named_yardsticks(names: str, server: Server, experiment: str) -> list[Server]:
    """Return the servers whose names, joined by commas, were given; UserError for a wrong one."""
    chosen = [files.server(name) for name in names.split(",") if name != server.name]
    for other in chosen:
        if experiment not in other.experiments or not other.runs:
            what = f"{other.name} is not measured in {experiment!r}"
            known = ", ".join(known.name for known in matrix.serving(experiment))
            raise UserError(what, "option --against", f"choose of {known}")
    return chosen


REMARK = "Measured by deathmatch measure."


def dataset_name(server: Server, given: str | None) -> str:
    """Return the name of the dataset; UserError if it cannot be one."""
    own_dataset.check_name(given or server.name, REMARK)
    return given or server.name


def text(
    title: str, name: str, rates: Mapping[str, Sequence[int]], duration_s: float, trials: int,
    seed: int, search: bool,
) -> str:  # fmt: skip
    """Return the text of a dataset's file: an experiment, and the rates of each server."""
    head = {"title": title, "remark": REMARK, "trials": trials, "seed": seed}
    steps = {"rates_rps": next(iter(rates.values())), "duration_s": duration_s}
    steps |= {"search": SEARCH} if search else {}
    grids = [{"servers": [server], "rates_rps": own} for server, own in rates.items()]
    return own_dataset.text(head, {name: (steps | own_dataset.like_model(name), grids)})


def own_rates(capacity_rps: float) -> tuple[int, ...]:
    """Return the rates that are offered to a server of this capacity, whole and different."""
    return tuple(sorted({max(1, round(capacity_rps * share)) for share in SHARES}))


def duration_s(trial_s: float, around_s: float, rounds: int) -> float:
    """Return for how long each rate is offered, in seconds.

    `trial_s` is the time left for all rounds of one server; a trial takes `around_s` of it without
    load. Where several rounds would be shorter than SHORTEST_S, it is as long as one round allows.
    """
    # A server that is overloaded answers for as long again as it was offered load.
    durations = len(SHARES) + sum(share > 1 for share in SHARES)
    several_s = (trial_s / rounds - around_s) / durations
    single_s = (trial_s - around_s) / durations
    shortest_s = min(SHORTEST_S, max(LEAST_S, single_s))
    return round(min(LONGEST_S, max(shortest_s, several_s)), 1)
