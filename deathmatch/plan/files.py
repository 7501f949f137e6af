"""The study's TOML files, each read and checked once: experiments, servers, datasets, testbeds.

A file that breaks its model is reported with file, key and remedy.
"""

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from deathmatch.errors import UserError, suggestions
from deathmatch.plan import paths, server_checks, validation_errors
from deathmatch.plan.dataset import Dataset
from deathmatch.plan.experiment import Experiment
from deathmatch.plan.paths import ROOT, names, path_of
from deathmatch.plan.server import Server
from deathmatch.plan.spec import NamedSpec
from deathmatch.plan.testbed import Testbed
from deathmatch.plan.validation_errors import Key

MODELS: dict[str, type[NamedSpec]] = {
    "experiment": Experiment,
    "server": Server,
    "dataset": Dataset,
    "testbed": Testbed,
}

# Tables of server.toml that a release inherits or replaces as a whole, as it does each of
# CONFIGURATIONS: their values hold for one release only.
WHOLE, CONFIGURATIONS = ("release", "factors"), "configurations"
EMPTY = ("", [], {})


def experiment(name: str, root: Path = ROOT) -> Experiment:
    """Return the experiment of that name; UserError if there is none or its file is wrong."""
    return load("experiment", name, root)


def server(name: str, root: Path = ROOT) -> Server:
    """Return the server of that name; UserError if there is none or its file is wrong."""
    return WITHOUT_FOLDER.get(name) or load("server", name, root)


def exists(kind: str, name: str, root: Path = ROOT) -> bool:
    """Return whether something of that kind has the name, without listing all as `names` does."""
    return paths.usable(kind, name) and path_of(kind, name, root).is_file()


def servers(root: Path = ROOT) -> list[Server]:
    """Return every server, by name; UserError if a file is wrong or two have the same title."""
    every = [server(name, root) for name in names("server", root)]
    seen: dict[str, str] = {}
    for each in every:
        title = " ".join(each.title.casefold().split())
        if title in seen:
            what = f"{paths.folder(seen[title])} has the title {each.title!r} too"
            remedy = "tables and figures distinguish servers by their titles"
            raise mistake("server", each.name, ["title"], what, remedy, root)
        seen[title] = each.name
    return every


def dataset(name: str, root: Path = ROOT) -> Dataset:
    """Return the dataset of that name; UserError if there is none or its file is wrong."""
    return load("dataset", name, root)


WITHOUT_FOLDER: dict[str, Server] = {}
"""Servers that a command defines in memory."""


def testbed(name: str, root: Path = ROOT) -> Testbed:
    """Return the testbed of that name; UserError if there is none or its file is wrong."""
    return load("testbed", name, root)


def load(kind: str, name: str, root: Path = ROOT) -> Any:
    """Return the spec of a kind, "experiment", "server", "dataset" or "testbed", by its name.

    Raises UserError when there is no such name (with the nearest one that exists) or when the
    file is wrong.
    """
    usable = paths.usable(kind, name)
    path = path_of(kind, name, root)
    if kind == "server" and usable and path.parent.is_dir() and not path.is_file():
        what = f"servers/{name} holds no server.toml"
        raise UserError(what, remedy="write it: servers/README.md has every key")
    # An invalid name might lead to a file elsewhere, such as one in servers/_template/.
    if not usable or not path.is_file():
        known = names(kind, root)
        new = path_of(kind, "<name>", root).relative_to(root)
        what = f"there is no {kind} {name[: paths.LONGEST]!r}"
        raise UserError(what, remedy=f"{suggestions(name, known)}\n  or write {new}")
    read = tuple((file, file.stat().st_mtime_ns) for file in _chain(kind, name, root))
    return _checked(kind, name, root, read)


def instruments(root: Path = ROOT) -> list[str]:
    """Return the servers that measure the harness; orders and counts leave them out."""
    return [server.name for server in servers(root) if server.instrument]


def newest(names: Iterable[str], root: Path = ROOT) -> list[str]:
    """Return the named servers without earlier releases of a system of which a later one is named.

    Servers without a system or a year stay, as do those whose folder is gone.
    """
    named = list(names)
    there = [server(name, root) for name in named if exists("server", name, root)]
    dated = [(each.name, each.release) for each in there if each.release and each.release.year]
    last = dict(sorted((release.system, release.year) for _, release in dated if release.system))
    older = {name for name, made in dated if made.year < last.get(made.system, made.year)}
    return [name for name in named if name not in older]


def mistake(kind: str, name: str, key: Key, what: str, remedy: str, root: Path = ROOT) -> UserError:
    """Return an error in a key of the file that defines the `kind` called `name`."""
    shown = str(path_of(kind, name, root).relative_to(root))
    return UserError(what, validation_errors.at(shown, key), remedy)


def written(kind: str, name: str, root: Path = ROOT) -> dict[str, Any]:
    """Return the keys of a file, merged with those of the files that it extends, unchecked."""
    return _merged(_chain(kind, name, root), root)


@cache
def _checked(kind: str, name: str, root: Path, read: tuple[tuple[Path, int], ...]) -> NamedSpec:
    chain = [path for path, _ in read]
    # Extended files first, so that each mistake is reported in its own file.
    for place, path in enumerate(chain, 1):
        value, shown = _merged(chain[:place], root), str(path.relative_to(root))
        remedy = f"config/schemas/{kind}.json has every key"
        spec = validation_errors.validated(MODELS[kind], value, shown, remedy, name)
    if isinstance(spec, Server):
        _check_server(spec, root)
    return spec


def _merged(chain: list[Path], root: Path) -> dict[str, Any]:
    value = _read(chain[0], root)
    for path in chain[1:]:
        value = _overlaid(value, _read(path, root), str(path.relative_to(root)))
    return value


def _chain(kind: str, name: str, root: Path) -> list[Path]:
    """Return the file and those that it extends, the file itself last."""
    chain, extended = [path_of(kind, name, root)], [name]
    while "extends" in MODELS[kind].model_fields:
        base = _read(chain[0], root).get("extends")
        if base is None:
            break
        path = path_of(kind, base, root) if paths.usable(kind, str(base)) else None
        where = validation_errors.at(str(chain[0].relative_to(root)), ["extends"])
        if base in extended or not (path and path.is_file()):
            what = "it extends itself" if base in extended else f"there is no {kind} {base!r}"
            known = [other for other in names(kind, root) if other not in extended]
            raise UserError(what, where, suggestions(str(base), known))
        # The reader of a release has two files to look into, and no more.
        if kind == "server" and (system := _read(path, root).get("extends")):
            what = f"{base!r} itself extends a server, {system!r}"
            raise UserError(what, where, f"extend {system!r}, its system")
        chain.insert(0, path)
        extended.append(base)
    return chain


def _read(path: Path, root: Path) -> dict[str, Any]:
    return _parsed(path, root, path.stat().st_mtime_ns)


@cache
def _parsed(path: Path, root: Path, _mtime_ns: int) -> dict[str, Any]:
    return validation_errors.parse(path.read_bytes(), str(path.relative_to(root)))


def _overlaid(
    base: dict[str, Any], own: dict[str, Any], shown: str, key: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return the keys of the file `shown`, laid over those of the file that it extends.

    Tables are merged key by key, except WHOLE and each configuration. An empty value removes the
    inherited key; within a table of a table it is a value.
    """
    made = dict(base)
    for name, value in own.items():
        if value in EMPTY and len(key) < 2:
            if name not in made:
                where = validation_errors.at(shown, [*key, name])
                what = "the extended file has no such key to remove"
                raise UserError(what, where, "leave the key out")
            del made[name]
        elif isinstance(value, dict) and name not in WHOLE and key != (CONFIGURATIONS,):
            under = made.get(name)
            under = under if isinstance(under, dict) else {}
            made[name] = _overlaid(under, value, shown, (*key, name))
        else:
            made[name] = value
    return made


def _check_server(server: Server, root: Path) -> None:
    known = names("experiment", root)
    for name in server.experiments:
        if name not in known:
            what = f"there is no experiment {name!r}"
            raise mistake(
                "server", server.name, ["experiments"], what, suggestions(name, known), root
            )
    experiments = [experiment(name, root) for name in server.experiments]
    server_checks.check(server, experiments, root)
