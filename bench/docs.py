#!/usr/bin/env python3
"""Write `config/schemas/` and the reference in servers/README.md from the models.

./shell python bench/docs.py
"""

import ast
import contextlib
import inspect
import json
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from deathmatch.plan import files  # noqa: E402
from deathmatch.plan.experiment import Factor  # noqa: E402
from deathmatch.plan.record import TrialRecord  # noqa: E402
from deathmatch.plan.selection import Settings  # noqa: E402
from deathmatch.plan.server import Server  # noqa: E402
from deathmatch.plan.server_checks import PLACEHOLDERS, PLACES  # noqa: E402

DIALECT = "https://json-schema.org/draft/2020-12/schema"
MARK = "<!-- From here on this is written by `./shell python bench/docs.py`. -->\n"
REFERENCE = """
## Every key of server.toml

{keys}
## Every placeholder of its commands

{placeholders}
A factor is a placeholder if `[factors]` names it, with the server's levels, the default first, or
`[]` for any; it must be a factor of an experiment that the server serves.

{factors}"""
README = ROOT / "servers" / "README.md"
MODELS = {**files.MODELS, "config": Settings, "trial": TrialRecord}


class _Plain(GenerateJsonSchema):
    """A schema without null, which TOML lacks, and without pydantic's titles."""

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

    def model_schema(self, schema: Any) -> dict[str, Any]:
        made = super().model_schema(schema)
        for key, said in _described(schema["cls"]).items():
            made["properties"][key]["description"] = said
        return made

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _described(model: type) -> dict[str, str]:
    """Return the string below each key in the source of a model and of its bases."""
    found: dict[str, str] = {}
    ours = (base for base in reversed(model.__mro__) if base.__module__.startswith("deathmatch"))
    for base in ours:
        # `plan.experiment.Load` has no source.
        with contextlib.suppress(OSError, TypeError):
            (written,) = ast.parse(inspect.getsource(base)).body
            for key, below in pairwise(written.body):
                if isinstance(key, ast.AnnAssign) and isinstance(below, ast.Expr):
                    found[key.target.id] = " ".join(ast.literal_eval(below.value).split())
    return {key: said for key, said in found.items() if key in model.model_fields}


@cache
def json_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON Schema of a model; it is cached and must not be changed."""
    made = model.model_json_schema(schema_generator=_Plain)
    for part in (made, *made.get("$defs", {}).values()):
        part.pop("title", None)
    return {"$schema": DIALECT, "title": model.__name__} | made


def schema_text(model: type[BaseModel]) -> str:
    """Return the schema as the text of its file in `config/schemas/`."""
    return json.dumps(json_schema(model), indent=2, ensure_ascii=False) + "\n"


def resolved(part: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return a part of a schema, merged over the one that it refers to."""
    if "$ref" not in part:
        return part
    target = schema["$defs"][part["$ref"].removeprefix("#/$defs/")]
    return target | {key: value for key, value in part.items() if key != "$ref"}


def of_any_key(part: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of the values of a table with free keys; {} if it has none."""
    free = [*part.get("patternProperties", {}).values(), part.get("additionalProperties")]
    return next((inner for inner in free if isinstance(inner, dict)), {})


def reference() -> str:
    """Return the keys of a server.toml as a Markdown table."""
    schema = json_schema(Server)
    return "| key | type | meaning |\n|---|---|---|\n" + "".join(_rows(schema, schema, ""))


def _rows(part: dict[str, Any], schema: dict[str, Any], prefix: str) -> list[str]:
    rows = []
    needed = (part | part.get("then", {}) | part.get("else", {})).get("required", [])
    for key, unresolved in part.get("properties", {}).items():
        inner = resolved(unresolved, schema)
        kind = _kind(inner) + (", required" if key in needed else "")
        rows.append(f"| `{prefix}{key}` | {kind} | {inner.get('description', '')} |\n")
        rows += _rows(inner, schema, f"{prefix}{key}.")
        named = resolved(of_any_key(inner), schema)
        rows += _rows(named, schema, f"{prefix}{key}.<name>.")
    return rows


def _kind(part: dict[str, Any]) -> str:
    if "anyOf" in part:
        return " or ".join(_kind(alternative) for alternative in part["anyOf"])
    kind = part.get("type", "text")
    if kind == "array":
        return f"list of {_kind(part.get('items', {}))}"
    names = {"string": "text", "object": "table", "integer": "whole number", "boolean": "yes or no"}
    return names.get(kind, kind)


def placeholders() -> str:
    """Return the placeholders of a server's commands as a Markdown table."""
    rows = [
        *(_placeholder(name, "all commands", *PLACES[name]) for name in PLACES),
        *(_placeholder(name, "`run`", *PLACEHOLDERS[name]) for name in PLACEHOLDERS),
        _placeholder("FACTOR", "`run`", "the factor's level in this trial", "see below"),
        _placeholder(
            "KEY", "`run`", "what the configuration that runs sets KEY to",
            "that key, of any name, in every table of `[configurations]` of that experiment",
        ),
    ]  # fmt: skip
    return "| placeholder | in | is | takes |\n|---|---|---|---|\n" + "".join(rows)


def _placeholder(name: str, commands: str, meaning: str, needs: str) -> str:
    return f"| `{{{name}}}` | {commands} | {meaning} | {needs} |\n"


def factors() -> str:
    """Return the factors of all experiments as a Markdown table, with their meaning and levels.

    A factor's meaning is that of the first experiment that has it.
    """
    uses: dict[str, list[tuple[str, Factor]]] = {}
    for experiment in map(files.experiment, files.names("experiment")):
        for name, factor in experiment.factors.items():
            uses.setdefault(name, []).append((experiment.name, factor))
    head = "| placeholder | is | in experiments | levels | takes |\n|---|---|---|---|---|\n"
    return head + "".join(_factor(name, uses[name]) for name in sorted(uses))


def _factor(name: str, places: list[tuple[str, Factor]]) -> str:
    experiments = ", ".join(experiment for experiment, _ in places)
    levels = dict.fromkeys(str(level) for _, factor in places for level in factor.levels)
    by_harness = [factor.of_harness for _, factor in places]
    takes = "nothing: the harness sets it" if all(by_harness) else f"`{name} = […]`"
    return (
        f"| `{{{name}}}` | {places[0][1].title} | {experiments} | {', '.join(levels)} | {takes} |\n"
    )


def page(text: str) -> str:
    """Return servers/README.md with a new reference."""
    return (
        text.partition(MARK)[0]
        + MARK
        + REFERENCE.format(keys=reference(), placeholders=placeholders(), factors=factors())
    )


def written() -> dict[Path, str]:
    """Return the text of each file that is made from the models."""
    made = {
        ROOT / "config" / "schemas" / f"{kind}.json": schema_text(model)
        for kind, model in MODELS.items()
    }
    return made | {README: page(README.read_text())}


if __name__ == "__main__":
    for file, text in written().items():
        file.write_text(text)
