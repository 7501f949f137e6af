"""What a model cannot check of a server: experiments, factors, files, placeholders that exist."""

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

# What each command can use, with its meaning and what it takes; servers/README.md shows it.
PLACES = {
    "build": ("the whole path of the folder that `build` writes into", "nothing"),
    "folder": ("the whole path of the server's own folder", "nothing"),
    "system": (
        "the whole path of the folder of the server that it `extends`, else of its own; `build` "
        "and `version` run there",
        "nothing",
    ),
}
# What a trial fills into a start command besides, its factors and what its configuration sets.
PLACEHOLDERS = {
    "host": ("the address to listen on", "nothing; without it, the server listens on all"),
    "port": ("the port to listen on", "nothing; must be used"),
    "workers": (
        "how many processes, threads or schedulers to run: as many as the server has CPUs where "
        '`schedulers` is "all", one more where it is "all-and-one", else 1',
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
    """Raise UserError at the first key that names what is not there.

    `experiments` are those that the server serves.
    """
    levels: dict[str, list[Level]] = {}
    for experiment in experiments:
        for factor, spec in experiment.factors.items():
            levels.setdefault(factor, []).extend(spec.levels)
    problems = itertools.chain(
        _of_files(server, root),
        _of_configurations(server),
        _of_factors(server, experiments, levels),
        _of_deviations(server, experiments),
        _of_commands(server, experiments),
        _of_use(server, experiments, levels),
    )
    for key, what, remedy in problems:
        shown = path_of("server", server.name, root).relative_to(root)
        raise UserError(what, at(str(shown), key), remedy)


def _of_files(server: Server, root: Path) -> Iterator[Problem]:
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
            yield ["packages", key], what, "the list stands in the server's own folder"
        if not _is_inside(server.list_in(file, root) / file, root):
            remedy = "servers/README.md has the command that writes it"
            yield ["packages", key], f"there is no {file} next to it", remedy


def _is_inside(path: Path, root: Path) -> bool:
    """Return whether it is there, and in the project wherever its symbolic links lead."""
    try:
        resolved = path.resolve(strict=True)
    except (OSError, ValueError, RuntimeError):
        # Nothing of that name, or no name at all: too long, a NUL, links in a circle.
        return False
    return resolved.is_relative_to(root.resolve()) and ".." not in path.parts


@cache
def _citation_keys(bibliography: Path, mtime_ns: int) -> list[str]:
    return re.findall(r"^@\w+\{([^,]+),", bibliography.read_text(), re.M)


def _of_configurations(server: Server) -> Iterator[Problem]:
    for name, configuration in server.configurations.items():
        for key in ("experiments", "first_in"):
            for experiment in getattr(configuration, key) or ():
                if experiment not in server.experiments:
                    what = f"the server does not serve {experiment!r}"
                    yield ["configurations", name, key], what, _known(server.experiments)


def _of_factors(
    server: Server, experiments: Sequence[Experiment], levels: dict[str, list[Level]]
) -> Iterator[Problem]:
    """Check the factors that it can set against those of the experiments that it serves."""
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


def _of_deviations(server: Server, experiments: Sequence[Experiment]) -> Iterator[Problem]:
    checks = [check.name for experiment in experiments for check in experiment.conformance or ()]
    for name in server.deviations:
        if name not in checks:
            what = "no experiment that it serves has this check"
            yield ["deviations", name], what, _known(checks)


def _of_commands(server: Server, experiments: Sequence[Experiment]) -> Iterator[Problem]:
    """Check that each command can be filled: its braces, quotes and placeholders."""
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


def _of_use(
    server: Server, experiments: Sequence[Experiment], levels: dict[str, list[Level]]
) -> Iterator[Problem]:
    """Check that the start command uses its port, and each factor that it can set.

    A server that no client loads has no address.
    """
    loaded = not experiments or any(experiment.client for experiment in experiments)
    needed = ["port"] if loaded else []
    for factor, known in server.factors.items():
        # With one level there is nothing to set; schedulers may be taken from the CPUs given.
        if len(known or levels.get(factor, [])) > 1 and factor != "schedulers":
            needed.append(factor)
    used = _placeholders(server.run)
    for name in needed:
        if name not in used:
            yield ["run"], f"the command does not use {{{name}}}", "servers/README.md explains it"


def _placeholders(command: str) -> list[str]:
    """Return the names in braces; ValueError for a brace that stands alone."""
    fields = [field for field in string.Formatter().parse(command) if field[1] is not None]
    for _, name, form, conversion in fields:
        if form or conversion:
            raise ValueError(f"the placeholder {name!r} is more than a name")
    return [name for _, name, *_ in fields]


def _known(names: Iterable[Level]) -> str:
    return f"known: {', '.join(map(str, dict.fromkeys(names)))}"
