"""Reading the study's TOML files: experiments, servers, datasets, testbeds.

Each kind has a JSON Schema in `config/schemas/`; a file that breaks its schema is reported
with file, line, key and remedy.
"""

import difflib
import json
import re
import tomllib
from functools import cache
from pathlib import Path

import jsonschema

from deathmatch.errors import UserError

ROOT = Path(__file__).resolve().parent.parent


def load(kind: str, name: str, root: Path = ROOT) -> dict:
    """Return the checked contents of the `kind` called `name`.

    `kind` is "experiment", "server", "dataset" or "testbed". Raises UserError when there is no
    such name (with the nearest one that exists) or when the file breaks its schema.
    """
    path = path_of(kind, name, root)
    if not path.is_file():
        known = names(kind, root)
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise UserError(
            f"there is no {kind} {name!r}",
            remedy=f"{hint}known: {', '.join(known)}; a new one is {path.relative_to(root)}",
        )
    return check(kind, path, root)


def path_of(kind: str, name: str, root: Path = ROOT) -> Path:
    """Return the file that defines the `kind` called `name`, whether or not it exists."""
    return {
        "experiment": root / "experiments" / f"{name}.toml",
        "server": root / "servers" / name / "server.toml",
        "dataset": root / "config" / "datasets" / f"{name}.toml",
        "testbed": root / "config" / "testbeds" / f"{name}.toml",
    }[kind]


def names(kind: str, root: Path = ROOT) -> list[str]:
    """Return the sorted names of everything of that kind in the tree."""
    pattern = path_of(kind, "*", root).relative_to(root)
    found = root.glob(str(pattern))
    return sorted(p.parent.name if kind == "server" else p.stem for p in found)


def check(kind: str, path: Path, root: Path = ROOT) -> dict:
    """Parse one TOML file and check it against the schema of its kind; UserError if it fails."""
    text = path.read_text()
    shown = path.relative_to(root) if path.is_relative_to(root) else path
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"not TOML: {error}", where=str(shown)) from None
    problems = sorted(
        _validator(kind, root).iter_errors(value), key=lambda e: [str(part) for part in e.path]
    )
    if problems:
        problem = problems[0]
        key, what, remedy = _explain(problem)
        line = line_of(text, key)
        raise UserError(what, f"{shown}, line {line}, key {'.'.join(map(str, key))}", remedy)
    return value


@cache
def _validator(kind: str, root: Path) -> jsonschema.Draft202012Validator:
    schema = json.loads((root / "config" / "schemas" / f"{kind}.json").read_text())
    return jsonschema.Draft202012Validator(schema)


def _explain(problem: jsonschema.ValidationError) -> tuple[list, str, str]:
    key = list(problem.absolute_path)
    if problem.validator == "additionalProperties":
        allowed = sorted(problem.schema.get("properties", {}))
        unknown = sorted(set(problem.instance) - set(allowed))[0]
        near = difflib.get_close_matches(unknown, allowed, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        return [*key, unknown], "unknown key", f"{hint}allowed here: {', '.join(allowed)}"
    if problem.validator == "required":
        missing = next(k for k in problem.validator_value if k not in problem.instance)
        meaning = problem.schema["properties"].get(missing, {}).get("description", "")
        return [*key, missing], "this key is missing", f"add it: {meaning}"
    return key, problem.message, problem.schema.get("description", "")


def line_of(text: str, key: list) -> int:
    """Return the 1-based line of a TOML text that sets `key`, or of its nearest parent table.

    `key` is a path of names and array indices. Good for the flat TOML of this project; inline
    tables are reported by the line of the key that holds them.
    """
    table, seen, best = [], {}, (0, 1)
    for number, line in enumerate(text.splitlines(), 1):
        if match := re.match(r"\s*\[\[\s*([^\]]+?)\s*\]\]", line):
            name = tuple(match[1].split("."))
            seen[name] = seen.get(name, -1) + 1
            table = [*name, seen[name]]
        elif match := re.match(r"\s*\[\s*([^\]]+?)\s*\]", line):
            table = [part.strip('"') for part in match[1].split(".")]
        elif match := re.match(r'\s*([\w."-]+)\s*=', line):
            here = [*table, *(part.strip('"') for part in match[1].split("."))]
            best = max(best, (_common(here, key), number), key=lambda pair: pair[0])
            continue
        else:
            continue
        best = max(best, (_common(table, key), number), key=lambda pair: pair[0])
    return best[1]


def _common(here: list, key: list) -> int:
    length = 0
    for ours, theirs in zip(here, key):
        if ours != theirs:
            return 0 if length < len(here) and length == 0 else length
        length += 1
    return length
