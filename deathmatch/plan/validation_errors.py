"""Mistakes in files of settings, as messages: what is wrong, in which line, and what to do."""

import codecs
import datetime
import difflib
import re
import tomllib
from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from deathmatch.errors import UserError
from deathmatch.plan import schemas

Key = Sequence[str | int]
Model = TypeVar("Model", bound=BaseModel)

# The mark that some editors write before the first character.
BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "UTF-8",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
SYNTAX = (
    "fix the syntax (toml.io): text stands in quotes, true and false in lower case, a key once; "
    "in double quotes a backslash is written twice"
)

# Former names of keys, which a fork's files may still have.
RENAMED = {"blocks": "grids", "calls_per_connection": "requests_per_connection"}

# The pattern of a text that says something.
NOT_BLANK = r"\S"

# No file of ours needs more; what reads them counts on the stack.
DEEPEST = 50
# How much of a line or a value a message quotes.
SHOWN = 300

# The name of pydantic's error for a wrong type.
TYPES = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "literal_error": "one of those",
}


class Mistake(Exception):
    """A mistake at one key of a file; `located` makes of it what the user reads."""

    def __init__(self, key: Key, what: str, remedy: str):
        super().__init__(what)
        self.key, self.what, self.remedy = key, what, remedy

    def located(self, file: str, text: str = "") -> UserError:
        """Return the error with the file's name, the line of its `text`, and the key."""
        line = f", line {line_of(text, self.key)}" if text else ""
        return UserError(
            self.what, f"{file}{line}, key {'.'.join(map(str, self.key))}", self.remedy
        )


def decoded(content: bytes, file: str) -> str:
    """Return the text of a file of settings; UserError if it is not plain UTF-8."""
    for mark, encoding in BYTE_ORDER_MARKS.items():
        if content.startswith(mark):
            what = f"it begins with the byte-order mark of {encoding}"
            raise UserError(what, f"{file}, line 1", "save it as UTF-8 without a byte-order mark")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        what = f"the byte 0x{content[error.start]:02x} is not UTF-8"
        raise UserError(what, f"{file}, line {line}", "save it as UTF-8") from None


def parse(text: str, file: str) -> dict[str, Any]:
    """Return the contents of a TOML text; UserError if it is not TOML."""
    try:
        contents = tomllib.loads(text)
        if _depth(contents) > DEEPEST:
            raise RecursionError
        return contents
    except tomllib.TOMLDecodeError as error:
        what, _, place = str(error).partition(" (at ")
        match = re.match(r"line (\d+)", place)
        lines = text.rstrip().splitlines() or [""]
        # Without a place, what was opened is not closed before the end.
        line = int(match[1]) if match else len(lines)
        shown = lines[line - 1].strip()[:SHOWN] if line <= len(lines) else ""
        raise UserError(
            f"not TOML: {what[:1].lower()}{what[1:SHOWN]}: `{shown}`",
            f"{file}, line {line}",
            SYNTAX,
        ) from None
    except (ValueError, RecursionError) as error:
        # Python's own limits: digits of a number, brackets within brackets.
        deep = isinstance(error, RecursionError)
        what = "tables or lists stand too deep" if deep else "a number is too long"
        raise UserError(f"not TOML: {what}", file, SYNTAX) from None


def _depth(contents: Any) -> int:
    """Return how many tables and lists stand within each other."""
    depth, level = 0, [contents]
    while level:
        inner = [part for part in level if isinstance(part, dict | list)]
        level = [
            value for part in inner for value in (part.values() if isinstance(part, dict) else part)
        ]
        depth += bool(inner)
    return depth


def validated(model: type[Model], value: Any, name: str = "") -> Model:
    """Return the value as a model, called `name`; raise Mistake if it does not fit."""
    try:
        return model.model_validate(value, context={"name": name})
    except ValidationError as error:
        raise _first(error, model, value) from None


def check(model: type[BaseModel], value: Any, file: str) -> None:
    """Raise UserError with the file and the key if the value does not fit the model."""
    try:
        validated(model, value)
    except Mistake as error:
        raise error.located(file) from None


def near(name: str, known: Sequence[str]) -> str:
    """Return "did you mean …? " with the nearest of the known names, empty if none is near."""
    likely = nearest(name, known)
    return f"did you mean {likely!r}? " if likely else ""


def nearest(name: str, known: Sequence[str]) -> str:
    """Return the nearest of the known names, empty if none is near."""
    return next(iter(difflib.get_close_matches(name, known, n=1)), "")


def line_of(text: str, key: Key) -> int:
    """Return the 1-based line of a TOML text that sets `key`, or of its nearest parent table.

    `key` is a path of names and array indices. Good for the flat TOML of this project; inline
    tables are reported by the line of the key that holds them.
    """
    wanted = list(key)
    table, tables, best = [], {}, (0, 1)
    for number, line in enumerate(text.splitlines(), 1):
        if match := re.match(r"\s*\[\[\s*([^\]]+?)\s*\]\]", line):
            name = tuple(match[1].split("."))
            tables[name] = tables.get(name, -1) + 1
            here = table = [*name, tables[name]]
            if list(name) == wanted and not tables[name]:
                return number
        elif match := re.match(r"\s*\[\s*([^\]]+?)\s*\]", line):
            here = table = [part.strip('"') for part in match[1].split(".")]
        elif match := re.match(r'\s*([\w."-]+)\s*=', line):
            here = [*table, *(part.strip('"') for part in match[1].split("."))]
        else:
            continue
        # A line that says more than the key, or something else, does not set it.
        if here == wanted[: len(here)] and len(here) > best[0]:
            best = (len(here), number)
    return best[1]


def _first(error: ValidationError, model: type[BaseModel], value: Any) -> Mistake:
    """Return the first mistake; unknown keys first, as one explains a key that is missing."""
    problems = error.errors(include_url=False)
    problem = min(problems, key=lambda other: other["type"] != "extra_forbidden")
    key = _key(problem["loc"], value)
    schema = schemas.json_schema(model)
    kind, context = problem["type"], problem.get("ctx", {})
    if kind == "extra_forbidden":
        allowed = sorted(_part(schema, key[:-1])["properties"])
        remedy = f"{near(str(key[-1]), allowed)}allowed here: {', '.join(allowed)}"
        if RENAMED.get(str(key[-1])) in allowed:
            return Mistake(key, "unknown key", f"rename it: its name is {RENAMED[key[-1]]} now")
        if key[:-1] and key[-1] in schema["properties"]:
            remedy = f"it belongs above the first line of the kind [table]; {remedy}"
        return Mistake(key, "unknown key", remedy)
    meaning = _meaning(schema, key)
    if "[key]" in problem["loc"]:
        meaning = _part(schema, key[:-1])["propertyNames"]["description"]
    if kind == "missing":
        return Mistake(key, "this key is missing", f"add it: {meaning}")
    if kind == "contradiction":
        return Mistake([*key, *context["key"]], problem["msg"], context["remedy"])
    alike = [other for other in problems if _key(other["loc"], value) == key]
    return Mistake(key, _problem(problem, alike), meaning)


def _problem(problem: dict[str, Any], alike: list[dict[str, Any]]) -> str:
    """Return what is wrong with one value; `alike` are the problems of the same key.

    A value that may be of several types has a problem for each of them.
    """
    given, kind, context = problem["input"], problem["type"], problem.get("ctx", {})
    if kind in TYPES:
        wanted = [
            other["ctx"]["expected"] if other["type"] == "literal_error" else TYPES[other["type"]]
            for other in alike
            if other["type"] in TYPES
        ]
        return f"{_shown(given)} is not {' or '.join(dict.fromkeys(wanted))}"
    bounds = {
        "greater_than_equal": "less than the least allowed, {ge:g}",
        "greater_than": "not greater than {gt:g}",
        "less_than_equal": "greater than the greatest allowed, {le:g}",
        "less_than": "not less than {lt:g}",
    }
    if kind in bounds:
        return f"{_shown(given)} is {bounds[kind].format(**context)}"
    if kind in ("string_too_short", "too_short"):
        return f"{given!r} is empty"
    if kind == "string_pattern_mismatch" and context["pattern"] == NOT_BLANK:
        return f"{given!r} is empty"
    if kind == "string_pattern_mismatch":
        return f"{_shown(given)} does not match {context['pattern']!r}"
    return problem["msg"]


def _shown(value: Any) -> str:
    """Return a value as a file of settings would write it."""
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case datetime.date() | datetime.time():
            return f"the date {value}" if isinstance(value, datetime.date) else f"the time {value}"
        case dict():
            return "a table"
    return repr(value)[:SHOWN]


def _key(place: tuple[int | str, ...], value: Any) -> list[int | str]:
    """Return the place of a problem without what pydantic adds to it: the names of types."""
    key: list[int | str] = []
    for part in place:
        if isinstance(value, dict) and isinstance(part, str):
            # pydantic marks what is wrong with the key of a table itself.
            if part != "[key]":
                key.append(part)
            value = value.get(part)
        elif isinstance(value, list | tuple) and isinstance(part, int):
            key.append(part)
            value = value[part] if part < len(value) else None
    return key


def _part(schema: dict[str, Any], key: Key) -> dict[str, Any]:
    """Return the part of a JSON Schema that describes a key; empty if none does."""
    part = schemas.resolved(schema, schema)
    for step in key:
        if isinstance(step, int):
            inner = part.get("items", {})
        else:
            inner = part.get("properties", {}).get(step) or schemas.of_any_key(part)
        part = schemas.resolved(inner, schema)
    return part


def _meaning(schema: dict[str, Any], key: Key) -> str:
    """Return the description of a key, or of the nearest above it that has one."""
    for end in range(len(key), 0, -1):
        part = _part(schema, key[:end])
        if "description" in part:
            return part["description"]
    return ""
