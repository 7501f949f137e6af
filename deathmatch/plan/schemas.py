"""Validation by the JSON Schemas of `config/schemas/`; `bench/docs.py` writes most of them."""

import json
from functools import cache
from typing import Any

import jsonschema

from deathmatch.errors import UserError
from deathmatch.plan.paths import ROOT
from deathmatch.plan.validation_errors import SHOWN, at


def validate(kind: str, value: dict[str, Any], file: str) -> None:
    """Check a value against `config/schemas/<kind>.json`; UserError with the file and the key."""
    problems = sorted(
        _validator(kind).iter_errors(value), key=lambda e: [str(part) for part in e.path]
    )
    for problem in problems[:1]:
        remedy = f"config/schemas/{kind}.json has every key"
        raise UserError(problem.message[:SHOWN], at(file, list(problem.absolute_path)), remedy)


@cache
def _validator(kind: str) -> jsonschema.Draft202012Validator:
    schema = json.loads((ROOT / "config" / "schemas" / f"{kind}.json").read_text())
    return jsonschema.Draft202012Validator(schema)
