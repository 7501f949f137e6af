"""Reading the study's TOML files: experiments, servers, datasets, testbeds.

Each kind has a JSON Schema in `config/schemas/`; a file that breaks its schema is reported
with file, line, key and remedy.
"""

import difflib
import json
import re
import shlex
import string
import tomllib
from functools import cache
from pathlib import Path

import jsonschema

from deathmatch.errors import UserError

ROOT = Path(__file__).resolve().parent.parent.parent

# Of each experiment of a dataset; deathmatch/data/tables.py has their schemas.
TABLES = ("trials", "points", "times", "samples", "seconds")

PLACES = {
    "experiment": "experiments/{}.toml",
    "server": "servers/{}/server.toml",
    "dataset": "config/datasets/{}.toml",
    "testbed": "config/testbeds/{}.toml",
}
# What a trial fills into a start command, besides {build}, {folder}, its factors and what its
# configuration sets.
PLACEHOLDERS = ("host", "port", "workers", "experiment", "configuration")
# What marks a factor as the harness's own: every server has it.
HARNESS = {"sysctl", "testbeds", "client"}


def load(kind: str, name: str, root: Path = ROOT) -> dict:
    """Return the checked contents of the `kind` called `name`; it is shared, so only to read.

    `kind` is "experiment", "server", "dataset" or "testbed". Raises UserError when there is no
    such name (with the nearest one that exists) or when the file breaks its schema.
    """
    path = path_of(kind, name, root)
    # A name with a slash would lead elsewhere; servers/_template/ is no server.
    if "/" in name or name.startswith("_") or not path.is_file():
        known = names(kind, root)
        raise UserError(
            f"there is no {kind} {name!r}",
            remedy=f"{_near(name, known)}known: {', '.join(known)}; "
            f"a new one is {path_of(kind, '<name>', root).relative_to(root)}",
        )
    return _check(kind, path, root, path.stat().st_mtime_ns)


def path_of(kind: str, name: str, root: Path = ROOT) -> Path:
    """Return the file that defines the `kind` called `name`, whether or not it exists."""
    return root / PLACES[kind].format(name)


def names(kind: str, root: Path = ROOT) -> list[str]:
    """Return the sorted names of everything of that kind in the tree."""
    pattern = path_of(kind, "[!_]*", root).relative_to(root)
    found = root.glob(str(pattern))
    return sorted(p.parent.name if kind == "server" else p.stem for p in found)


def instruments(root: Path = ROOT) -> list[str]:
    """Return the servers that measure the harness: no order, count or "every server" has them."""
    return [name for name in names("server", root) if load("server", name, root).get("instrument")]


@cache
def _check(kind: str, path: Path, root: Path, mtime_ns: int) -> dict:
    shown = str(path.relative_to(root))
    try:
        text = path.read_text(encoding="utf-8")
        value = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"not TOML: {error}", shown, "mend the syntax (toml.io)") from None
    validate(kind, value, shown, text, root)
    if kind == "server":
        _check_server(value, shown, text, root)
    return value


def _check_server(server: dict, shown: str, text: str, root: Path) -> None:
    """Check what a schema cannot: experiments, factors and placeholders that exist."""

    def mistake(key: list, what: str, known: list[str]) -> UserError:
        where = f"{shown}, line {line_of(text, key)}, key {'.'.join(map(str, key))}"
        return UserError(what, where, f"known: {', '.join(known)}")

    keys = re.findall(r"^@\w+\{([^,]+),", (root / "paper/source/references.bib").read_text(), re.M)
    if server["source"] not in (sources := ["ours", *keys]):
        raise mistake(["source"], f"no reference has the key {server['source']!r}", sources)
    for path in server.get("sources", []):
        if not (root / path).exists():
            where = f"{shown}, line {line_of(text, ['sources'])}, key sources"
            raise UserError(f"there is no {path}", where, "name files and folders from the root")
    lock = server.get("packages", {}).get("pypi")
    if lock and not (root / shown).with_name(lock).is_file():
        where = f"{shown}, line {line_of(text, ['packages', 'pypi'])}, key packages.pypi"
        raise UserError(
            f"there is no {lock} beside it", where, "write it: uv pip compile --generate-hashes"
        )
    for name, configuration in server.get("configurations", {}).items():
        for experiment in configuration.get("experiments", []):
            if experiment not in server["experiments"]:
                what = f"the server does not serve {experiment!r}"
                raise mistake(["configurations", name, "experiments"], what, server["experiments"])
    levels: dict[str, list] = {}
    checks: list[str] = []
    always = []
    for name in server["experiments"]:
        if name not in names("experiment", root):
            raise mistake(
                ["experiments"], f"there is no experiment {name!r}", names("experiment", root)
            )
        experiment = load("experiment", name, root)
        checks += [check["name"] for check in experiment.get("conformance", [])]
        for factor, about in experiment["factors"].items():
            levels.setdefault(factor, []).extend(about["levels"])
            always += [factor] if HARNESS & about.keys() else []
    for factor, able in server.get("factors", {}).items():
        if server["experiments"] and factor not in levels:
            what = "no experiment that it serves has this factor"
            raise mistake(["factors", factor], what, sorted(levels))
        for level in able:
            if server["experiments"] and level not in levels[factor]:
                what = f"no experiment that it serves has the level {level!r}"
                raise mistake(["factors", factor], what, [str(known) for known in levels[factor]])
    for check in server.get("deviations", {}):
        if check not in checks:
            what = "no experiment that it serves has this check"
            raise mistake(["deviations", check], what, checks)
    places = {"version": ["build", "folder"], "build": ["build", "folder"]}
    own = {
        key
        for configuration in server.get("configurations", {}).values()
        for key in [*configuration, "configuration"]
    }
    own -= {"about", "experiments"}
    places["run"] = [*places["build"], *PLACEHOLDERS, *always, *server.get("factors", {}), *own]
    for key, known in places.items():
        known = [f"{{{place}}}" for place in known]
        try:
            used = [place for _, place, *_ in string.Formatter().parse(server.get(key, ""))]
            shlex.split(server.get(key, ""))
        except ValueError as error:
            what = f"{error}; a literal brace is written twice"
            raise mistake([key], what, known) from None
        for place in used:
            if place is not None and f"{{{place}}}" not in known:
                raise mistake([key], f"unknown placeholder {{{place}}}", known)
    _check_use(server, levels, shown, text, root)


def _check_use(server: dict, levels: dict, shown: str, text: str, root: Path) -> None:
    """Check that the start command uses what it must: its address, and each factor it can set."""
    run = {place for _, place, *_ in string.Formatter().parse(server["run"])}
    clients = {load("experiment", name, root)["client"] for name in server["experiments"]}
    remedies = {"host": "listen on the address {host}", "port": "listen on the port {port}"}
    needed = [] if clients <= {"memory"} else [*remedies]
    for factor, able in server.get("factors", {}).items():
        # With one level there is nothing to set; schedulers may be taken from the CPUs given.
        if len(able or levels.get(factor, [])) > 1 and factor != "schedulers":
            needed.append(factor)
    for name in needed:
        if name not in run:
            what = f"the command does not use {{{name}}}"
            remedy = remedies.get(name, f"use it, or take {name} out of [factors]")
            where = f"{shown}, line {line_of(text, ['run'])}, key run"
            raise UserError(what, where, remedy)


def validate(kind: str, value: dict, where: str, text: str = "", root: Path = ROOT) -> None:
    """Check a value against the schema of its kind; UserError with the key and a remedy.

    `where` names the file; `text`, its TOML text, gives the line.
    """
    problems = sorted(
        _validator(kind, root).iter_errors(value), key=lambda e: [str(part) for part in e.path]
    )
    if problems:
        key, what, remedy = _explain(problems[0])
        line = f", line {line_of(text, key)}" if text else ""
        raise UserError(what, f"{where}{line}, key {'.'.join(map(str, key))}", remedy)


@cache
def _validator(kind: str, root: Path) -> jsonschema.Draft202012Validator:
    schema = json.loads((root / "config" / "schemas" / f"{kind}.json").read_text())
    return jsonschema.Draft202012Validator(schema)


def _explain(problem: jsonschema.ValidationError) -> tuple[list, str, str]:
    key = list(problem.absolute_path)
    if problem.validator == "additionalProperties":
        allowed = sorted(problem.schema.get("properties", {}))
        unknown = min(set(problem.instance) - set(allowed))
        return (
            [*key, unknown],
            "unknown key",
            f"{_near(unknown, allowed)}allowed here: {', '.join(allowed)}",
        )
    if problem.validator == "required":
        missing = next(k for k in problem.validator_value if k not in problem.instance)
        meaning = problem.schema["properties"].get(missing, {}).get("description", "")
        return [*key, missing], "this key is missing", f"add it: {meaning}"
    if "propertyNames" in problem.absolute_schema_path:
        key = [*key, problem.instance]
    return key, problem.message, problem.schema.get("description", "")


def _near(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {near[0]!r}? " if near else ""


def line_of(text: str, key: list) -> int:
    """Return the 1-based line of a TOML text that sets `key`, or of its nearest parent table.

    `key` is a path of names and array indices. Good for the flat TOML of this project; inline
    tables are reported by the line of the key that holds them.
    """
    table, tables, best = [], {}, (0, 1)
    for number, line in enumerate(text.splitlines(), 1):
        if match := re.match(r"\s*\[\[\s*([^\]]+?)\s*\]\]", line):
            name = tuple(match[1].split("."))
            tables[name] = tables.get(name, -1) + 1
            here = table = [*name, tables[name]]
        elif match := re.match(r"\s*\[\s*([^\]]+?)\s*\]", line):
            here = table = [part.strip('"') for part in match[1].split(".")]
        elif match := re.match(r'\s*([\w."-]+)\s*=', line):
            here = [*table, *(part.strip('"') for part in match[1].split("."))]
        else:
            continue
        # A line that says more than the key, or something else, does not set it.
        if here == key[: len(here)] and len(here) > best[0]:
            best = (len(here), number)
    return best[1]
