"""Mistakes in settings files and records, as a `UserError` with the file and the key."""

import tomllib
from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from deathmatch.errors import UserError, close_names

Key = Sequence[str | int]
Model = TypeVar("Model", bound=BaseModel)

SHOWN = 300
"""The longest quotation of a value or of a library's message, in characters."""


def at(file: str, key: Key) -> str:
    """Return the place of a key: "config/datasets/mine.toml, key experiments.backlog.trials"."""
    return f"{file}, key {'.'.join(map(str, key))}" if key else file


def parse(content: bytes, file: str) -> dict[str, Any]:
    """Return the content of a TOML file; UserError if it is not TOML in UTF-8."""
    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        # Also raised at Python's own limits, for digits of a number and nested brackets.
        why = str(error)[:SHOWN]
        raise UserError(f"not TOML: {why}", file, "fix the syntax: see toml.io") from None


def validated(model: type[Model], value: Any, file: str, remedy: str = "", name: str = "") -> Model:
    """Return the value as an instance of the model with that name.

    Raises UserError with the key of the first mistake, what is wrong and the `remedy`.
    """
    try:
        return model.model_validate(value, context={"name": name})
    except ValidationError as error:
        raise _user_error(error, model, value, file, remedy) from None


def _user_error(
    error: ValidationError, model: type[BaseModel], value: Any, file: str, remedy: str
) -> UserError:
    problems = error.errors(include_url=False)
    # An unknown key first: it may be a missing one, misspelt.
    problem = min(problems, key=lambda other: other["type"] != "extra_forbidden")
    key = _key(problem["loc"], value)
    if problem["type"] == "extra_forbidden":
        return UserError("unknown key", at(file, key), close_names(key[-1], _keys(model)) or remedy)
    if problem["type"] == "missing":
        return UserError("this key is missing", at(file, key), remedy)
    # A value of a union type has a problem for each type.
    alike = [other["msg"] for other in problems if _key(other["loc"], value) == key]
    what = " or ".join(dict.fromkeys(alike)).replace("Value error, ", "")
    if not isinstance(problem["input"], dict):
        what += f", not {repr(problem['input'])[:SHOWN]}"
    return UserError(what, at(file, key), remedy)


def _key(place: tuple[int | str, ...], value: Any) -> list[str]:
    """Return the key of a problem, without the names of types that pydantic adds to it."""
    key = []
    for part in place:
        if isinstance(value, dict) and isinstance(part, str):
            # pydantic's mark for a problem of a table's key, not of its value.
            if part != "[key]":
                key.append(part)
            value = value.get(part)
        elif isinstance(value, list | tuple) and isinstance(part, int):
            key.append(str(part))
            value = value[part] if part < len(value) else None
    return key


def _keys(model: type[BaseModel]) -> list[str]:
    """Return every key that a file of the model may have, in any of its tables."""
    schema = model.model_json_schema()
    parts = [schema, *schema.get("$defs", {}).values()]
    return sorted({key for part in parts for key in part.get("properties", {})})
