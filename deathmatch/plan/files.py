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


def experiment(name: str, root: Path = ROOT) -> Experiment:
    """Return the experiment of that name; UserError if there is none or its file is wrong."""
    return load("experiment", name, root)


def server(name: str, root: Path = ROOT) -> Server:
    """Return the server of that name; UserError if there is none or its file is wrong."""
    return WITHOUT_FOLDER.get(name) or load("server", name, root)


def servers(root: Path = ROOT) -> list[Server]:
    """Return every server, by name; UserError if a file is wrong or two have the same title."""
    every = [server(name, root) for name in names("server", root)]
    check_titles(every, root)
    return every


def check_titles(every: Iterable[Server], root: Path = ROOT) -> None:
    """Raise UserError if two servers have the same title, for a reader."""
    seen: dict[str, str] = {}
    for each in every:
        title = " ".join(each.title.casefold().split())
        if title in seen:
            what = f"servers/{seen[title]} has the title {each.title!r} too"
            remedy = "tables and figures distinguish servers by their titles"
            raise mistake("server", each.name, ["title"], what, remedy, root)
        seen[title] = each.name


def dataset(name: str, root: Path = ROOT) -> Dataset:
    """Return the dataset of that name; UserError if there is none or its file is wrong."""
    return load("dataset", name, root)


WITHOUT_FOLDER: dict[str, Server] = {}
"""Servers that a command made for itself."""


def testbed(name: str, root: Path = ROOT) -> Testbed:
    """Return the testbed of that name, with what it takes from the one that it extends.

    Raises UserError if there is none or its file is wrong.
    """
    return load("testbed", name, root)


def load(kind: str, name: str, root: Path = ROOT) -> Any:
    """Return the spec of a kind, "experiment", "server", "dataset" or "testbed", by its name.

    Raises UserError when there is no such name (with the nearest one that exists) or when the
    file is wrong.
    """
    path = path_of(kind, name, root)
    usable = paths.usable(kind, name)
    if kind == "server" and usable and path.parent.is_dir() and not path.is_file():
        what = f"servers/{name} holds no server.toml"
        raise UserError(what, remedy="write it: servers/README.md has every key")
    # Another name would lead elsewhere; servers/_template/ holds no server.
    if not usable or not path.is_file():
        known = names(kind, root)
        new = path_of(kind, "<name>", root).relative_to(root)
        what = f"there is no {kind} {name[: paths.LONGEST]!r}"
        raise UserError(what, remedy=f"{suggestions(name, known)}\n  a new one is {new}")
    # A testbed may extend another.
    read = [path_of(kind, bed, root) for bed in names(kind, root)] if kind == "testbed" else [path]
    return _checked(kind, name, root, tuple(file.stat().st_mtime_ns for file in read))


def instruments(root: Path = ROOT) -> list[str]:
    """Return the servers that measure the harness: no order, count or "every server" has them."""
    return [server.name for server in servers(root) if server.instrument]


def newest(names: Iterable[str], root: Path = ROOT) -> list[str]:
    """Return the servers of which no other one is a later release of the same system.

    A server that tells no system or no year stays, and so does one whose folder is gone.
    """
    named = list(names)
    dated = [
        (name, (release.system, release.year))
        for name in named
        if path_of("server", name, root).is_file()
        and (release := server(name, root).release)
        and release.system
        and release.year
    ]
    last = dict(sorted(release for _, release in dated))
    older = {name for name, (system, year) in dated if year < last[system]}
    return [name for name in named if name not in older]


def mistake(kind: str, name: str, key: Key, what: str, remedy: str, root: Path = ROOT) -> UserError:
    """Return the error of one key of a file."""
    shown = str(path_of(kind, name, root).relative_to(root))
    return UserError(what, validation_errors.at(shown, key), remedy)


@cache
def _checked(kind: str, name: str, root: Path, mtimes_ns: tuple[int, ...]) -> NamedSpec:
    value: dict[str, Any] = {}
    for shown, own in _chain(kind, name, root):
        value = _merged(value, own)
        remedy = f"config/schemas/{kind}.json has every key"
        spec = validation_errors.validated(MODELS[kind], value, shown, remedy, name)
    if isinstance(spec, Server):
        _check_server(spec, root)
    return spec


def _chain(kind: str, name: str, root: Path) -> list[tuple[str, dict[str, Any]]]:
    """Return the path and the content of the file and of those that it extends, it last."""
    chain, extended = [_read(path_of(kind, name, root), root)], [name]
    while kind == "testbed" and (base := chain[0][1].get("extends")) is not None:
        known = [other for other in names(kind, root) if other not in extended]
        if base not in known:
            what = "it extends itself" if base in extended else f"there is no {kind} {base!r}"
            where = validation_errors.at(chain[0][0], ["extends"])
            raise UserError(what, where, suggestions(base, known))
        chain.insert(0, _read(path_of(kind, base, root), root))
        extended.append(base)
    return chain


def _read(path: Path, root: Path) -> tuple[str, dict[str, Any]]:
    shown = str(path.relative_to(root))
    return shown, validation_errors.parse(path.read_bytes(), shown)


def _merged(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Return two tables as one, table by table; the second has the last word."""
    both = {
        key: _merged(under[key], value)
        for key, value in over.items()
        if isinstance(value, dict) and isinstance(under.get(key), dict)
    }
    return under | over | both


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
