"""JSON Schemas, `config/schemas/`: made from the models of specs, or written by hand."""

import json
from functools import cache
from typing import Any

import jsonschema
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from deathmatch.errors import UserError
from deathmatch.plan.paths import ROOT
from deathmatch.plan.validation_errors import SHOWN, at

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class _Plain(GenerateJsonSchema):
    """A schema without what TOML has not (null) and without pydantic's own titles."""

    schema_dialect = DIALECT

    def default_schema(self, schema: Any) -> dict[str, Any]:
        inner = schema["schema"]
        if schema.get("default", ...) is None and inner["type"] == "nullable":
            return self.generate_inner(inner["schema"])
        made = super().default_schema(schema)
        # The description states a default; the schema does so for whole numbers only.
        if type(made.get("default")) is not int:
            made.pop("default", None)
        return made

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


@cache
def json_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON Schema of a model; it is shared, so only to read."""
    made = model.model_json_schema(schema_generator=_Plain)
    for part in (made, *made.get("$defs", {}).values()):
        part.pop("title", None)
    return {"$schema": DIALECT, "title": model.__name__} | made


def text(model: type[BaseModel]) -> str:
    """Return the schema as the text of its file in `config/schemas/`."""
    return json.dumps(json_schema(model), indent=2, ensure_ascii=False) + "\n"


def resolved(part: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return a part of a schema with what it refers to, its own words first."""
    if "$ref" not in part:
        return part
    target = schema["$defs"][part["$ref"].removeprefix("#/$defs/")]
    return target | {key: value for key, value in part.items() if key != "$ref"}


def of_any_key(part: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of the values of a table whose keys are free; empty if it has none."""
    free = [*part.get("patternProperties", {}).values(), part.get("additionalProperties")]
    return next((inner for inner in free if isinstance(inner, dict)), {})


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
