"""The list of load generators: the folders in clients/ with a `client.toml`.

This file has its name, program, version and origin. The module of the same name in this package has
its command line and report; it is imported only when it is used, since polars loads slowly, and a
plan does not need it.
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
# The factor with the number of connections held during the load, and the client that holds them.
IDLE_FACTOR, HOLDER = "idle_connections", "roundtrip"
# The factor that replaces an experiment's client by another one with the same load and columns. A
# variant has it only if its level is not the experiment's own client.
FACTOR = "load_generator"
# The client that needs little CPU time for a connection, and offers overloads.
LIGHT = "roundtrip"
# Experiment's client -> those that may replace it, with the module of this package for each.
_REPLACEMENTS = {"httperf": {LIGHT: "roundtrip_calls"}}


class LoadKey(pydantic.BaseModel, frozen=True, extra="forbid"):
    """A key of an experiment's [load], and its meaning for the load generator."""

    type: Literal["text", "integer", "number", "boolean"]
    description: str
    required: bool = False
    at_least: int | float | None = None
    above: int | float | None = None
    at_most: int | float | None = None


class Client(pydantic.BaseModel, frozen=True, extra="forbid"):
    """A `client.toml`. `name` is that of its folder; missing keys are None, or empty."""

    name: str
    title: str
    # Its executable, and a command that prints the version in its first line.
    program: str
    version: str
    # The server whose build makes it; None if clients/<name>/build does.
    built_by: str | None = None
    # Its expression in nix/.
    nix: str | None = None
    # Whether its load is a rate only, so that it can search for a server's capacity.
    searches: bool = False
    # Whether a rate of 0 is a closed loop.
    closed_loop: bool = False
    load: dict[str, LoadKey] = {}


def names() -> tuple[str, ...]:
    """Return the names of all load generators, sorted."""
    return tuple(sorted(path.parent.name for path in ROOT.glob("clients/*/client.toml")))


@cache
def client(name: str) -> Client:
    """Return the `client.toml` of a load generator.

    Raises UserError if there is none of that name, or for a wrong key in its file.
    """
    if name not in names():
        known = ", ".join(names())
        raise UserError(f"there is no load generator {name!r}", remedy=f"known: {known}")
    return read(name, ROOT / "clients" / name / "client.toml")


def read(name: str, path: Path) -> Client:
    """Return the content of a load generator's file; UserError if it is wrong."""
    where = f"clients/{name}/client.toml"
    try:
        found = tomllib.loads(path.read_text())
        if "name" in found:
            raise UserError(
                "a client is called by its own folder", f"{where}, key name", "take it out"
            )
        return Client.model_validate(found | {"name": name})
    # Thousands of digits raise ValueError, thousands of brackets RecursionError.
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
    """Import a load generator's module, and return the load generator.

    `replaced` is the client that it replaces, if any.
    """
    module = _REPLACEMENTS[replaced][name] if replaced else client(name).name.replace("-", "_")
    return import_module(f"deathmatch.load.{module}").GENERATOR


def holder(own: str) -> LoadGenerator:
    """Return the load generator that holds idle connections while an experiment's client runs."""
    return generator(HOLDER, own if own in _REPLACEMENTS else None)


def of_trial(spec: Mapping[str, Any]) -> LoadGenerator:
    """Return the load generator of a trial, by `client` and `factors` of its `spec`."""
    chosen = spec["client"]
    if FACTOR not in spec["factors"]:
        return generator(chosen)
    return generator(chosen, next(own for own, by in _REPLACEMENTS.items() if chosen in by))


def levels(own: str | None) -> tuple[str, ...]:
    """Return the levels of FACTOR for an experiment's client: itself first; () if it has none."""
    return (own, *_REPLACEMENTS[own]) if own in _REPLACEMENTS else ()


CLIENTS = names()
