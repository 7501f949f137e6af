"""The study's TOML files, each read and checked once: experiments, servers, datasets, testbeds.

A file that breaks its model is reported with file, line, key and remedy.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from deathmatch.errors import UserError
from deathmatch.plan import mistakes, server_checks
from deathmatch.plan.dataset import Dataset
from deathmatch.plan.experiment import Experiment
from deathmatch.plan.mistakes import Key, Mistake
from deathmatch.plan.root import ROOT
from deathmatch.plan.server import Server
from deathmatch.plan.spec import NamedSpec
from deathmatch.plan.testbed import Testbed

MODELS: dict[str, type[NamedSpec]] = {
    "experiment": Experiment,
    "server": Server,
    "dataset": Dataset,
    "testbed": Testbed,
}
PLACES = {
    "experiment": "experiments/{}.toml",
    "server": "servers/{}/server.toml",
    "dataset": "config/datasets/{}.toml",
    "testbed": "config/testbeds/{}.toml",
}


@dataclass(frozen=True)
class _File:
    """A TOML file, with what its mistakes are reported by."""

    shown: str
    text: str
    value: dict[str, Any]


def experiment(name: str, root: Path = ROOT) -> Experiment:
    """Return the experiment of that name; UserError if there is none or its file is wrong."""
    return load("experiment", name, root)


def server(name: str, root: Path = ROOT) -> Server:
    """Return the server of that name; UserError if there is none or its file is wrong."""
    return load("server", name, root)


def servers(root: Path = ROOT) -> list[Server]:
    """Return every server, by name; UserError if a file is wrong."""
    return [server(name, root) for name in names("server", root)]


def dataset(name: str, root: Path = ROOT) -> Dataset:
    """Return the dataset of that name; UserError if there is none or its file is wrong."""
    return load("dataset", name, root)


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
    # A name with a slash would lead elsewhere; servers/_template/ is no server.
    if "/" in name or name.startswith("_") or not path.is_file():
        known = names(kind, root)
        raise UserError(
            f"there is no {kind} {name!r}",
            remedy=f"{mistakes.near(name, known)}known: {', '.join(known)}; "
            f"a new one is {path_of(kind, '<name>', root).relative_to(root)}",
        )
    return _checked(kind, name, root, path.stat().st_mtime_ns)


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
    return [each.name for each in servers(root) if each.instrument]


def mistake(kind: str, name: str, key: Key, what: str, remedy: str) -> UserError:
    """Return the error of one key of a file, with the line that sets it."""
    path = path_of(kind, name)
    return Mistake(key, what, remedy).located(str(path.relative_to(ROOT)), path.read_text())


@cache
def _checked(kind: str, name: str, root: Path, mtime_ns: int) -> NamedSpec:
    file = _read(path_of(kind, name, root), root)
    value = _extended(file, name, root, ()) if kind == "testbed" else file.value
    try:
        spec = mistakes.validated(MODELS[kind], value, name)
        if isinstance(spec, Server):
            _check_server(spec, root)
    except Mistake as found:
        raise found.located(file.shown, file.text) from None
    return spec


def _read(path: Path, root: Path) -> _File:
    shown, content = str(path.relative_to(root)), path.read_bytes()
    value = mistakes.parse(content, shown)
    return _File(shown, content.decode(), value)


def _extended(file: _File, name: str, root: Path, below: Sequence[str]) -> dict[str, Any]:
    """Return what a testbed's file says, over what the one says that it extends."""
    base = file.value.get("extends")
    if base is None:
        return file.value
    known = [each for each in names("testbed", root) if each not in (name, *below)]
    if base not in known:
        what = "it extends itself" if base in (name, *below) else f"there is no testbed {base!r}"
        raise Mistake(["extends"], what, f"known: {', '.join(known)}").located(
            file.shown, file.text
        )
    # Its own mistakes are reported of it.
    testbed(base, root)
    under = _extended(_read(path_of("testbed", base, root), root), base, root, (name, *below))
    return _merged(under, file.value)


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
            raise Mistake(["experiments"], what, f"known: {', '.join(known)}")
    experiments = [experiment(name, root) for name in server.experiments]
    server_checks.check(server, experiments, root)
