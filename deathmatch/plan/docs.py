"""The reference in servers/README.md, from the schema itself: `python -m deathmatch docs`."""

import argparse
import json

from deathmatch.plan import config

MARK = "<!-- From here on this is written by `python -m deathmatch docs`. -->\n"
FILE = config.ROOT / "servers" / "README.md"


def reference(kind: str = "server") -> str:
    """Return the keys of a schema in `config/schemas/` as a Markdown table."""
    schema = json.loads((config.ROOT / "config" / "schemas" / f"{kind}.json").read_text())
    return "| key | type | meaning |\n|---|---|---|\n" + "".join(_rows(schema, ""))


def _rows(schema: dict, prefix: str) -> list[str]:
    rows = []
    for key, about in schema.get("properties", {}).items():
        needed = key in schema.get("required", [])
        kind = _kind(about) + (", required" if needed else "")
        rows.append(f"| `{prefix}{key}` | {kind} | {about.get('description', '')} |\n")
        rows += _rows(about, f"{prefix}{key}.")
        inner = about.get("additionalProperties")
        if isinstance(inner, dict) and "properties" in inner:
            rows += _rows(inner, f"{prefix}{key}.<name>.")
    return rows


def _kind(about: dict) -> str:
    kind = about.get("type", "text")
    if kind == "array":
        return f"list of {_kind(about.get('items', {}))}"
    names = {"string": "text", "object": "table", "integer": "whole number", "boolean": "yes or no"}
    kinds = kind if isinstance(kind, list) else [kind]
    return " or ".join(names.get(one, one) for one in kinds)


def page(text: str) -> str:
    """Return servers/README.md with its reference made anew."""
    return text.partition(MARK)[0] + MARK + "\n" + reference()


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command line takes: nothing."""


def main(given: argparse.Namespace) -> int:
    """Write the reference into servers/README.md."""
    FILE.write_text(page(FILE.read_text()))
    return 0
