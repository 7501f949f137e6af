"""Checking a value against a JSON Schema that is written by hand: claims and differences."""

import json
from functools import cache
from typing import Any

import jsonschema

from deathmatch.plan.root import ROOT
from deathmatch.plan.validation_errors import Mistake, near


def validate(kind: str, value: dict[str, Any], where: str, text: str = "") -> None:
    """Check a value against `config/schemas/<kind>.json`; UserError with the key and a remedy.

    `where` names the file; `text`, its TOML text, gives the line.
    """
    problems = sorted(
        _validator(kind).iter_errors(value), key=lambda e: [str(part) for part in e.path]
    )
    if problems:
        raise _explained(problems[0]).located(where, text)


@cache
def _validator(kind: str) -> jsonschema.Draft202012Validator:
    schema = json.loads((ROOT / "config" / "schemas" / f"{kind}.json").read_text())
    return jsonschema.Draft202012Validator(schema)


def _explained(problem: jsonschema.ValidationError) -> Mistake:
    key = list(problem.absolute_path)
    if problem.validator == "additionalProperties":
        allowed = sorted(problem.schema.get("properties", {}))
        unknown = min(set(problem.instance) - set(allowed))
        remedy = f"{near(unknown, allowed)}allowed here: {', '.join(allowed)}"
        return Mistake([*key, unknown], "unknown key", remedy)
    if problem.validator == "required":
        missing = next(k for k in problem.validator_value if k not in problem.instance)
        meaning = problem.schema["properties"].get(missing, {}).get("description", "")
        return Mistake([*key, missing], "this key is missing", f"add it: {meaning}")
    return Mistake(key, problem.message, problem.schema.get("description", ""))
