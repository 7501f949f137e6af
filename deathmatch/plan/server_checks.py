"""Checks of a server beyond its model: its experiments, factors, files and placeholders exist."""

import itertools
import re
import shlex
import string
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from deathmatch.errors import UserError
from deathmatch.plan.experiment import Experiment
from deathmatch.plan.paths import LONGEST, path_of
from deathmatch.plan.server import OWN_NAMES, Server
from deathmatch.plan.spec import Level
from deathmatch.plan.validation_errors import at

# The placeholders of every command, each with its value and requirement for servers/README.md.
PLACES = {
    "build": ("the absolute path of the folder that `build` writes into", "nothing"),
    "folder": ("the absolute path of the server's own folder", "nothing"),
    "system": (
        "the absolute path of the folder of the server that it `extends`, or of its own; `build` "
        "and `version` run there",
        "nothing",
    ),
}
# Those of the start command, in addition to its factors and the keys of its configurations.
PLACEHOLDERS = {
    "host": ("the address to listen on", "nothing; without it, the server listens on all"),
    "port": ("the port to listen on", "nothing; must be used"),
    "workers": (
        "how many processes, threads or schedulers to run: one for each CPU if `schedulers` is "
        '"all", one more if it is "all-and-one", otherwise 1',
        '`schedulers = ["one", "all"]` under `[factors]`; without it, always 1',
    ),
    "experiment": ("the experiment's name, for a server that serves several", "nothing"),
    "configuration": (
        "the name of the configuration that runs",
        'a table `[configurations.<name>]`; without one, "default"',
    ),
}


Problem = tuple[list[str], str, str]
"""A key of server.toml, what is wrong with it, and what to do."""


def check(server: Server, experiments: Sequence[Experiment], root: Path) -> None:
    """Raise UserError for the first key that names something that does not exist.

    `experiments` has those that the server serves.
    """
    levels: dict[str, list[Level]] = {}
    for experiment in experiments:
        for factor, spec in experiment.factors.items():
            levels.setdefault(factor, []).extend(spec.levels)
    problems = itertools.chain(
        _file_problems(server, root),
        _configuration_problems(server),
        _factor_problems(server, experiments, levels),
        _deviation_problems(server, experiments),
        _command_problems(server, experiments),
        _unused_placeholders(server, experiments, levels),
    )
    for key, what, remedy in problems:
        shown = path_of("server", server.name, root).relative_to(root)
        raise UserError(what, at(str(shown), key), remedy)


def _file_problems(server: Server, root: Path) -> Iterator[Problem]:
    bibliography = root / "paper" / "source" / "references.bib"
    sources = ["ours", *_citation_keys(bibliography, bibliography.stat().st_mtime_ns)]
    if server.source not in sources:
        yield ["source"], f"no reference has the key {server.source!r}", _known(sources)
    for path in server.sources:
        if not _is_inside(root / path, root):
            what = f"there is no {path[:LONGEST]} in the project"
            yield ["sources"], what, "name files and folders from the project's root"
    for key, file in server.packages.lists.items():
        own = OWN_NAMES[key]
        if own and file != own:
            yield ["packages", key], f"its list must be called {own}", f"name {own}"
        if Path(file).name != file or len(file) > LONGEST or "\0" in file:
            what = f"{file[:LONGEST]!r} is not the name of a file"
            yield ["packages", key], what, "name a list in the server's own folder"
        if not _is_inside(server.list_in(file, root) / file, root):
            remedy = "servers/README.md has the command that writes it"
            yield ["packages", key], f"the server's folder has no {file}", remedy


def _is_inside(path: Path, root: Path) -> bool:
    """Return whether the path exists and, with its symbolic links resolved, is in the project."""
    try:
        resolved = path.resolve(strict=True)
    except (OSError, ValueError, RuntimeError):
        # It does not exist, is too long, has a NUL, or its links form a circle.
        return False
    return resolved.is_relative_to(root.resolve()) and ".." not in path.parts


@cache
def _citation_keys(bibliography: Path, mtime_ns: int) -> list[str]:
    return re.findall(r"^@\w+\{([^,]+),", bibliography.read_text(), re.M)


def _configuration_problems(server: Server) -> Iterator[Problem]:
    for name, configuration in server.configurations.items():
        for key in ("experiments", "first_in"):
            for experiment in getattr(configuration, key) or ():
                if experiment not in server.experiments:
                    what = f"the server does not serve {experiment!r}"
                    yield ["configurations", name, key], what, _known(server.experiments)


def _factor_problems(
    server: Server, experiments: Sequence[Experiment], levels: dict[str, list[Level]]
) -> Iterator[Problem]:
    """Yield the factors that its experiments lack, and those that a conformance check needs."""
    for factor, known in server.factors.items() if experiments else ():
        if factor not in levels:
            what = "no experiment that it serves has this factor"
            yield ["factors", factor], what, _known(sorted(levels))
        for level in known:
            if level not in levels[factor]:
                what = f"no experiment that it serves has the level {level!r}"
                yield ["factors", factor], what, _known(levels[factor])
    for experiment in experiments if server.runs else ():
        # One conformance check at least must apply to what the server can set.
        checks = experiment.conformance or ()
        missing = [sorted((check.when or {}).keys() - server.factors.keys()) for check in checks]
        if checks and all(missing):
            factor = missing[0][0]
            what = f"experiment {experiment.name!r} checks its answers by this factor"
            remedy = f"add it with the levels that the server knows, of {_levels(levels, factor)}"
            yield ["factors", factor], what, remedy


def _levels(levels: dict[str, list[Level]], factor: str) -> str:
    return ", ".join(map(str, dict.fromkeys(levels[factor])))


def _deviation_problems(server: Server, experiments: Sequence[Experiment]) -> Iterator[Problem]:
    checks = [check.name for experiment in experiments for check in experiment.conformance or ()]
    for name in server.deviations:
        if name not in checks:
            what = "no experiment that it serves has this check"
            yield ["deviations", name], what, _known(checks)


def _command_problems(server: Server, experiments: Sequence[Experiment]) -> Iterator[Problem]:
    """Yield the wrong braces, quotes and placeholders of each command."""
    of_harness = [
        name
        for experiment in experiments
        for name, spec in experiment.factors.items()
        if spec.of_harness
    ]
    own = [key for each in server.configurations.values() for key in each.placeholders]
    filled = [*PLACES, *PLACEHOLDERS, *of_harness, *server.factors, *own]
    for key, command, places in (
        ("version", server.version, PLACES),
        ("build", server.build or "", PLACES),
        ("run", server.run, filled),
    ):
        known = [f"{{{place}}}" for place in places]
        try:
            used = _placeholders(command)
            shlex.split(command)
        except ValueError as error:
            yield [key], f"{error}; a literal brace is written twice", _known(known)
            return
        for place in used:
            if f"{{{place}}}" not in known:
                yield [key], f"unknown placeholder {{{place}}}", _known(known)


def _unused_placeholders(
    server: Server, experiments: Sequence[Experiment], levels: dict[str, list[Level]]
) -> Iterator[Problem]:
    """Yield the port, if a client loads it, and each factor that the start command does not use."""
    loaded = not experiments or any(experiment.client for experiment in experiments)
    needed = ["port"] if loaded else []
    for factor, known in server.factors.items():
        # A single level needs no setting; a server may derive schedulers from the CPUs that it has.
        if len(known or levels.get(factor, [])) > 1 and factor != "schedulers":
            needed.append(factor)
    used = _placeholders(server.run)
    for name in needed:
        if name not in used:
            yield ["run"], f"the command does not use {{{name}}}", "servers/README.md explains it"


def _placeholders(command: str) -> list[str]:
    """Return the names in braces; ValueError for a brace without its partner."""
    fields = [field for field in string.Formatter().parse(command) if field[1] is not None]
    for _, name, form, conversion in fields:
        if form or conversion:
            raise ValueError(f"the placeholder {name!r} must be a name only")
    return [name for _, name, *_ in fields]


def _known(names: Iterable[Level]) -> str:
    return f"known: {', '.join(map(str, dict.fromkeys(names)))}"
