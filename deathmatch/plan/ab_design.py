"""What `deathmatch compare A B` compares: two variants, and the dataset that its trials make.

side("yucan:backlog=5,schedulers=one")
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from deathmatch.errors import UserError, suggestions
from deathmatch.load import registry
from deathmatch.plan import files, matrix, own_dataset
from deathmatch.plan.server import Server
from deathmatch.plan.spec import Level
from deathmatch.plan.trial import CONFIGURATION, Variant


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
            f"{text!r} names no side of a comparison",
            remedy="write SERVER, or SERVER:FACTOR=LEVEL,FACTOR=LEVEL, such as yucan:backlog=5",
        )
    files.server(server)
    return Side(server, tuple((name, level) for name, _, level in pairs))


def experiment(sides: Sequence[Side], wanted: str | None) -> str:
    """Return the experiment in which both sides are measured: the one that is `wanted`, or the
    first under load that both servers serve. UserError if there is none.
    """
    first, second = (files.server(side.server) for side in sides)
    both = [
        name for name in first.experiments
        if name in second.experiments and files.experiment(name).client
    ]  # fmt: skip
    if wanted is not None:
        files.experiment(wanted)
    if wanted is not None and wanted not in both:
        remedy = f"both serve {', '.join(both)}" if both else "choose another server"
        raise UserError(f"not both serve {wanted!r} under load", "--experiment", remedy)
    if not both:
        raise UserError(
            f"no experiment under load is served by {first.name!r} and by {second.name!r}",
            remedy=f"{first.name} serves {', '.join(first.experiments)}; "
            f"{second.name} serves {', '.join(second.experiments)}",
        )
    return wanted or both[0]


def levels(chosen: Side, name: str) -> dict[str, Level]:
    """Return the level of each factor that a side names, in the experiment called `name`.

    UserError if the server lacks the factor or the level.
    """
    server, spec = files.server(chosen.server), files.experiment(name)
    known = {factor: tuple(_levels(server, name, factor)) for factor in spec.factors}
    known |= {CONFIGURATION: tuple(server.configurations_in(name))}
    known |= {registry.FACTOR: spec.load_generators}
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


def _levels(server: Server, name: str, factor: str) -> Sequence[Level]:
    spec = files.experiment(name).factors[factor]
    return matrix.known_levels(spec, server.factors.get(factor)) or ()


def variant(chosen: Side, name: str) -> Variant:
    """Return the variant that a side is in an experiment: what it names, else the defaults."""
    named = {factor: (level,) for factor, level in levels(chosen, name).items()}
    return matrix.product(files.experiment(name), named, files.server(chosen.server))[0]


def dataset_name(sides: Sequence[Side], given: str | None) -> str:
    """Return the name of the comparison's dataset; UserError if it cannot be one, or exists."""
    plain = re.sub(r"[^\w.-]+", "-", f"compare-{sides[0]}-{sides[1]}").strip("-")
    own_dataset.check_name(given or plain)
    return given or plain


def text(
    sides: Sequence[Side], name: str, rates_rps: Sequence[int], duration_s: float, trials: int,
    seed: int,
) -> str:  # fmt: skip
    """Return the text of the dataset's file."""
    head = {
        "title": f"A: {sides[0]}; B: {sides[1]}",
        "remark": "Measured by deathmatch compare, in blocks of four trials: ABBA or BAAB.",
        "trials": trials, "seed": seed,
    }  # fmt: skip
    steps = {"rates_rps": rates_rps, "duration_s": duration_s} | own_dataset.like_model(name)
    grids = [
        {"servers": [side.server]}
        | {factor: [level] for factor, level in levels(side, name).items()}
        for side in sides
    ]
    return own_dataset.text(head, {name: (steps, grids)})
