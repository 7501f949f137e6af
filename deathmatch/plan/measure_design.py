"""What `deathmatch measure A [B ...]` measures: servers with settings, their rates, the dataset.

side("yucan:backlog=5,schedulers=one")
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from deathmatch.errors import UserError, suggestions
from deathmatch.load import registry
from deathmatch.plan import files, matrix, own_dataset
from deathmatch.plan.server import Server
from deathmatch.plan.spec import Level
from deathmatch.plan.trial import CONFIGURATION, Variant

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
REMARK = "Measured by deathmatch measure."


@dataclass(frozen=True)
class Side:
    """A server with the settings that were named; the others have their defaults."""

    server: str
    named: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        """Return it as it is typed: `yucan:backlog=5`."""
        settings = ",".join(f"{factor}={level}" for factor, level in self.named)
        return f"{self.server}:{settings}" if settings else self.server


def side(text: str) -> Side:
    """Return the side that a word names; UserError if it is not SERVER[:FACTOR=LEVEL,...]."""
    server, _, settings = text.partition(":")
    pairs = [pair.partition("=") for pair in settings.split(",")] if settings else []
    if not server or any(not (name and equals and level) for name, equals, level in pairs):
        raise UserError(
            f"{text!r} names no server with settings",
            remedy="write SERVER, or SERVER:FACTOR=LEVEL,FACTOR=LEVEL, such as yucan:backlog=5",
        )
    files.server(server)
    return Side(server, tuple((name, level) for name, _, level in pairs))


def experiment(sides: Sequence[Side], wanted: str | None) -> str:
    """Return the experiment in which all are measured: `wanted`, else the first that all serve.

    Two are offered the same load, which need not be a rate; otherwise each is offered rates of its
    own. UserError if there is none.
    """
    servers = [files.server(side.server) for side in sides]
    able = [
        name for name in servers[0].experiments
        if all(name in server.experiments and server.runs for server in servers)
        and (client := files.experiment(name).client)
        and (len(sides) == 2 or registry.client(client).searches)
    ]  # fmt: skip
    load = "under load" if len(sides) == 2 else "by an offered rate"
    names = ", ".join(dict.fromkeys(server.name for server in servers))
    if not able:
        served = "; ".join(
            f"{server.name} serves {', '.join(server.experiments)}"
            for server in dict.fromkeys(servers)
        )
        raise UserError(
            f"no experiment measures {names} {load}",
            "key experiments of server.toml",
            f"{served}; snakemake --config dataset=smoke servers={names.replace(' ', '')} "
            "measures each in what it serves",
        )
    if wanted is not None and wanted not in able:
        files.experiment(wanted)
        what = f"{wanted!r} does not measure {names} {load}"
        raise UserError(what, "option --experiment", f"choose one of {', '.join(able)}")
    return wanted or able[0]


def levels(chosen: Side, name: str) -> dict[str, Level]:
    """Return the level of each factor that a side names, in the experiment called `name`.

    UserError if the server lacks the factor or the level.
    """
    server, spec = files.server(chosen.server), files.experiment(name)
    known = {
        factor: matrix.known_levels(spec.factors[factor], server.factors.get(factor)) or ()
        for factor in spec.factors
    }
    known |= {CONFIGURATION: server.configurations_in(name), registry.FACTOR: spec.load_generators}
    known = {factor: able for factor, able in known.items() if able}
    chosen_levels: dict[str, Level] = {}
    for factor, text in chosen.named:
        if factor not in known:
            raise UserError(
                f"{chosen.server!r} has no factor {factor!r} in {name!r}",
                remedy=suggestions(factor, list(known)) + f"its factors: {', '.join(known)}",
            )
        level = next((level for level in known[factor] if str(level) == text), None)
        if level is None:
            raise UserError(
                f"the factor {factor!r} of {chosen.server!r} has no level {text!r} in {name!r}",
                remedy=f"its levels: {', '.join(map(str, known[factor]))}",
            )
        chosen_levels[factor] = level
    return chosen_levels


def variant(chosen: Side, name: str) -> Variant:
    """Return the variant that a side is in an experiment: what it names, else the defaults."""
    named = {factor: (level,) for factor, level in levels(chosen, name).items()}
    return matrix.product(files.experiment(name), named, files.server(chosen.server))[0]


def yardsticks(server: Server, name: str, build_s: Callable[[Server], float]) -> list[Side]:
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
    chosen = ceilings + (own + [other for other in rest if other not in own])[:YARDSTICKS]
    return [Side(other.name) for other in chosen]


def dataset_name(sides: Sequence[Side], given: str | None) -> str:
    """Return the name of the dataset; UserError if it cannot be one, or if another one has it.

    A pair's trials are blocks, which those of an earlier run must not join.
    """
    name = given or re.sub(r"[^\w.-]+", "-", "-".join(map(str, sides))).strip("-")
    own_dataset.check_name(name, "" if len(sides) == 2 else REMARK)
    return name


def text(
    title: str, name: str, rates: Mapping[Side, Sequence[int]], duration_s: float, trials: int,
    seed: int, search: bool = False,
) -> str:  # fmt: skip
    """Return the text of a dataset's file: an experiment, and the rates of each side."""
    head = {"title": title, "remark": REMARK, "trials": trials, "seed": seed}
    steps = {"rates_rps": next(iter(rates.values())), "duration_s": duration_s}
    steps |= {"search": SEARCH} if search else {}
    grids = [
        {"servers": [side.server], "rates_rps": own}
        | {factor: [level] for factor, level in levels(side, name).items()}
        for side, own in rates.items()
    ]
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
