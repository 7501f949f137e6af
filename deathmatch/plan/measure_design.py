"""The design of `deathmatch measure A [B ...]`: servers with settings, their rates, the dataset."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from deathmatch.errors import UserError, suggestions
from deathmatch.load import registry
from deathmatch.plan import files, matrix, own_dataset
from deathmatch.plan.server import Server
from deathmatch.plan.spec import Level
from deathmatch.plan.trial import CONFIGURATION, Variant

CEILINGS = ("null", "ws-null")
"""Servers that answer at once, so that their rates are the limit of testbed and client."""
YARDSTICKS = 2
RECENT_YEARS = 2
"""How much older a yardstick's release may be than the newest of all servers."""
RATES_RPS = (100, 500, 2_000)
"""Offered to every server; the cost of a reply is compared at the highest that all carry."""
SEARCH = {"probe_s": 0.5, "probes": 12, "margin": 1.2, "cost_shares": [0.5], "most_s": 45}
DURATION_S, OPENING_S = 2, 15
"""How long a rate is offered: of requests, and of messages on 10,000 connections, whose opening
takes 10 s at 1,000 a second."""
OPENING = "opening"
PACES = (128, 0)
"""The levels of the factor OPENING that are measured: 128 under way, and 1,000 a second."""
REMARK = "Measured by deathmatch measure."


@dataclass(frozen=True)
class Side:
    """A server with the named settings; the others have their defaults."""

    server: str
    named: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        """Return it as a user types it: `yucan:backlog=5,schedulers=one`."""
        settings = ",".join(f"{factor}={level}" for factor, level in self.named)
        return f"{self.server}:{settings}" if settings else self.server


def side(text: str) -> Side:
    """Return the side of an argument; UserError if it is not SERVER[:FACTOR=LEVEL,...]."""
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
    """Return the experiment that measures all sides: `wanted`, or the first that all serve.

    Raises UserError if there is none.
    """
    servers = [files.server(side.server) for side in sides]
    able = [
        name for name in servers[0].experiments
        if all(name in server.experiments and server.runs for server in servers)
        and files.experiment(name).client
    ]  # fmt: skip
    names = ", ".join(dict.fromkeys(server.name for server in servers))
    if not able:
        served = "; ".join(
            f"{server.name} serves {', '.join(server.experiments)}"
            for server in dict.fromkeys(servers)
        )
        raise UserError(
            f"no experiment measures {names} under load",
            "key experiments of server.toml",
            f"{served}; snakemake --config dataset=smoke servers={names.replace(' ', '')} "
            "measures each in what it serves",
        )
    if wanted is not None and wanted not in able:
        files.experiment(wanted)
        what = f"{wanted!r} does not measure {names} under load"
        raise UserError(what, "option --experiment", f"choose one of {', '.join(able)}")
    return wanted or able[0]


def levels(chosen: Side, name: str) -> dict[str, Level]:
    """Return the level of each factor that a side names, in the experiment `name`.

    Raises UserError if the server lacks the factor or the level.
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


def variants(chosen: Side, name: str, card: bool) -> tuple[Variant, ...]:
    """Return the variants of a side in the experiment `name`: the combinations of its `grid`."""
    return matrix.product(
        files.experiment(name), grid(chosen, name, card), files.server(chosen.server)
    )


def grid(chosen: Side, name: str, card: bool) -> dict[str, tuple[Level, ...]]:
    """Return the levels of the factors that a side names, and of those of a `card`, if it is one.

    For a card, the load generator that offers the most takes the place of the experiment's own, and
    connections are opened at each of PACES, unless the side names another level.
    """
    own = levels_of_cards(name) if card else {}
    return own | {factor: (level,) for factor, level in levels(chosen, name).items()}


def levels_of_cards(name: str) -> dict[str, tuple[Level, ...]]:
    """Return the levels of an experiment's factors at which a card's servers are measured."""
    spec = files.experiment(name)
    levels: dict[str, tuple[Level, ...]] = {}
    if registry.LIGHT in spec.load_generators:
        levels[registry.FACTOR] = (registry.LIGHT,)
    if OPENING in spec.factors:
        levels[OPENING] = PACES
    return levels


def yardsticks(server: Server, name: str, build_s: Callable[[Server], float]) -> list[Side]:
    """Return the servers to compare with: the ceiling, and the two that are built soonest.

    A server of the same language comes first. `build_s` returns the time of a server's build.
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
    """Return the name of the dataset; UserError if it is not valid, or taken.

    The name of an earlier pair counts as taken, since two runs must not mix their blocks of trials.
    """
    name = given or re.sub(r"[^\w.-]+", "-", "-".join(map(str, sides))).strip("-")
    own_dataset.check_name(name, "" if len(sides) == 2 else REMARK)
    return name


def text(
    title: str, name: str, sides: Sequence[Side], rates_rps: Sequence[int], duration_s: float,
    trials: int, seed: int, card: bool,
) -> str:  # fmt: skip
    """Return the text of a dataset's file: an experiment with the rates, a grid for each side.

    For a `card`, each server's capacity is searched for, if the client can search.
    """
    head = {"title": title, "remark": REMARK, "trials": trials, "seed": seed}
    model = own_dataset.model(name).as_written
    own = ("trials", "rates_rps", "duration_s", "search")
    steps = {"rates_rps": rates_rps, "duration_s": duration_s}
    steps |= {"search": SEARCH} if card and searches(name) else {}
    steps |= {key: value for key, value in model.items() if key not in own}
    grids = [
        {"servers": [side.server]} | {key: list(of) for key, of in grid(side, name, card).items()}
        for side in dict.fromkeys(sides)
    ]
    return own_dataset.text(head, {name: (steps, grids)})


def searches(name: str) -> bool:
    """Return whether the experiment's client offers a rate and so can search for a capacity."""
    client = files.experiment(name).client
    return bool(client) and registry.client(client).searches


def load(name: str) -> tuple[tuple[int, ...], float]:
    """Return the rates of a card in an experiment, and how long each is offered, in seconds."""
    if searches(name):
        return RATES_RPS, DURATION_S
    model = own_dataset.model(name)
    return tuple(model.rates_rps or ()), max(OPENING_S, model.duration_s or 0)
