"""What is written from the models: `config/schemas/` and the reference in servers/README.md.

`./shell deathmatch docs` writes them.
"""

import argparse
from pathlib import Path
from typing import Any

from deathmatch.plan import files, schemas
from deathmatch.plan.record import TrialRecord
from deathmatch.plan.root import ROOT
from deathmatch.plan.server import Server
from deathmatch.plan.settings import Settings

MARK = "<!-- From here on this is written by `python -m deathmatch docs`. -->\n"
README = ROOT / "servers" / "README.md"
MODELS = {**files.MODELS, "config": Settings, "trial": TrialRecord}


def reference() -> str:
    """Return the keys of a server.toml as a Markdown table."""
    schema = schemas.of(Server)
    return "| key | type | meaning |\n|---|---|---|\n" + "".join(_rows(schema, schema, ""))


def _rows(part: dict[str, Any], schema: dict[str, Any], prefix: str) -> list[str]:
    rows = []
    for key, unresolved in part.get("properties", {}).items():
        inner = schemas.resolved(unresolved, schema)
        kind = _kind(inner) + (", required" if key in part.get("required", []) else "")
        rows.append(f"| `{prefix}{key}` | {kind} | {inner.get('description', '')} |\n")
        rows += _rows(inner, schema, f"{prefix}{key}.")
        named = schemas.resolved(schemas.of_any_key(inner), schema)
        rows += _rows(named, schema, f"{prefix}{key}.<name>.")
    return rows


def _kind(part: dict[str, Any]) -> str:
    if "anyOf" in part:
        return " or ".join(_kind(each) for each in part["anyOf"])
    kind = part.get("type", "text")
    if kind == "array":
        return f"list of {_kind(part.get('items', {}))}"
    names = {"string": "text", "object": "table", "integer": "whole number", "boolean": "yes or no"}
    return names.get(kind, kind)


def page(text: str) -> str:
    """Return servers/README.md with its reference made anew."""
    return text.partition(MARK)[0] + MARK + "\n" + reference()


def written() -> dict[Path, str]:
    """Return each file that is made from the models, with its text."""
    made = {
        ROOT / "config" / "schemas" / f"{kind}.json": schemas.text(model)
        for kind, model in MODELS.items()
    }
    return made | {README: page(README.read_text())}


def main(given: argparse.Namespace) -> int:
    """Write the schemas and the reference in servers/README.md."""
    for file, text in written().items():
        file.write_text(text)
    return 0
