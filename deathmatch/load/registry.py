"""The load generators that there are: a folder in clients/, with its `client.toml`, for each.

Names, programs, versions and where each comes from are read there; how it is called and what it
reports is in the module of its name in this package, which is imported only when it is used:
polars loads slowly, and a plan needs none.
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import pydantic

from deathmatch.errors import UserError
from deathmatch.load.generator import LoadGenerator

ROOT = Path(__file__).resolve().parent.parent.parent
# The factor whose connections are held during the load, and by which client.
IDLE_FACTOR, HOLDER = "idle_connections", "roundtrip"
# The factor that replaces an experiment's client by another one with the same load and columns. It
# is named only where it has another level than the experiment's own client.
FACTOR = "load_generator"
# The client that takes little CPU for a connection, and offers overloads.
LIGHT = "roundtrip"
# Experiment's client -> those that may replace it, with the module of this package for each.
_REPLACEMENTS = {"httperf": {LIGHT: "roundtrip_calls"}}


class LoadKey(pydantic.BaseModel, frozen=True, extra="forbid"):
    """A key of an experiment's [load]: what it means to the load generator, in its unit."""

    type: Literal["text", "integer", "number", "boolean"]
    description: str
    required: bool = False
    at_least: int | float | None = None
    above: int | float | None = None
    at_most: int | float | None = None


class Client(pydantic.BaseModel, frozen=True, extra="forbid"):
    """A `client.toml`. `name` is its folder's; what it lacks is None, or empty."""

    name: str
    title: str
    # Its executable; and a command whose first line of output is its version.
    program: str
    version: str
    # The server whose build makes it; None if clients/<name>/build does.
    built_by: str | None = None
    # Its expression in nix/.
    nix: str | None = None
    # Whether its rate alone is the load, so that a server's capacity can be searched for with it.
    searches: bool = False
    # Whether a rate of 0 is a closed loop.
    closed_loop: bool = False
    load: dict[str, LoadKey] = {}


def names() -> tuple[str, ...]:
    """Return the names of all load generators, sorted."""
    return tuple(sorted(path.parent.name for path in ROOT.glob("clients/*/client.toml")))


@cache
def client(name: str) -> Client:
    """Return what `client.toml` says of a load generator.

    Raises UserError if there is none of that name, and for a file that is wrong, with its key.
    """
    if name not in names():
        known = ", ".join(names())
        raise UserError(f"there is no load generator {name!r}", remedy=f"known: {known}")
    return read(name, ROOT / "clients" / name / "client.toml")


def read(name: str, path: Path) -> Client:
    """Return what a file says of the load generator of that name; UserError if it is wrong."""
    where = f"clients/{name}/client.toml"
    try:
        found = tomllib.loads(path.read_text())
        if "name" in found:
            raise UserError(
                "a client is called by its own folder", f"{where}, key name", "take it out"
            )
        return Client.model_validate(found | {"name": name})
    # A number of thousands of digits is a ValueError, thousands of brackets are a RecursionError.
    except (ValueError, RecursionError) as error:
        if isinstance(error, pydantic.ValidationError):
            raise _mistake(error, where) from None
        raise UserError(f"not TOML: {error}", where, "fix the syntax (toml.io)") from None


def _mistake(error: pydantic.ValidationError, where: str) -> UserError:
    first = error.errors()[0]
    key = ".".join(map(str, first["loc"]))
    known = ", ".join(field for field in Client.model_fields if field != "name")
    return UserError(first["msg"], f"{where}, key {key}", f"its keys: {known}")


@cache
def generator(name: str, replaced: str | None = None) -> LoadGenerator:
    """Return the load generator itself, for which its module is imported.

    `replaced` is the client in whose place it is, if any.
    """
    module = _REPLACEMENTS[replaced][name] if replaced else client(name).name.replace("-", "_")
    return import_module(f"deathmatch.load.{module}").GENERATOR


def holder(own: str) -> LoadGenerator:
    """Return the load generator that holds idle connections beside an experiment's client."""
    return generator(HOLDER, own if own in _REPLACEMENTS else None)


def of_trial(spec: Mapping[str, Any]) -> LoadGenerator:
    """Return the load generator of a trial, of which `spec` has `client` and `factors`."""
    chosen = spec["client"]
    if FACTOR not in spec["factors"]:
        return generator(chosen)
    return generator(chosen, next(own for own, by in _REPLACEMENTS.items() if chosen in by))


def levels(own: str | None) -> tuple[str, ...]:
    """Return the levels of FACTOR for an experiment's client: itself first; () if it has none."""
    return (own, *_REPLACEMENTS[own]) if own in _REPLACEMENTS else ()


CLIENTS = names()
