"""What a model cannot check of a server: experiments, factors, files, placeholders that exist."""

import re
import shlex
import string
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from deathmatch.plan.experiment import Experiment
from deathmatch.plan.paths import LONGEST
from deathmatch.plan.registries import OWN_NAMES
from deathmatch.plan.server import Server
from deathmatch.plan.spec import Level
from deathmatch.plan.validation_errors import Key, Mistake

# What each command can use, with its meaning and what it takes; servers/README.md shows it.
PLACES = {
    "build": ("the whole path of the folder that `build` writes into", "nothing"),
    "folder": ("the whole path of the server's own folder", "nothing"),
}
# What a trial fills into a start command besides, its factors and what its configuration sets.
PLACEHOLDERS = {
    "host": ("the address to listen on", "nothing; must be used"),
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


def check(server: Server, experiments: Sequence[Experiment], root: Path) -> None:
    """Raise Mistake at the first key that names what is not there.

    `experiments` are those that the server serves.
    """
    _check_files(server, root)
    for name, configuration in server.configurations.items():
        for key in ("experiments", "first_in"):
            for experiment in getattr(configuration, key) or ():
                if experiment not in server.experiments:
                    what = f"the server does not serve {experiment!r}"
                    raise _unknown(["configurations", name, key], what, server.experiments)
    levels: dict[str, list[Level]] = {}
    for experiment in experiments:
        for factor, spec in experiment.factors.items():
            levels.setdefault(factor, []).extend(spec.levels)
    _check_factors(server, levels)
    for experiment in experiments if server.runs else ():
        _check_conditions(server, experiment)
    checks = [check.name for experiment in experiments for check in experiment.conformance or ()]
    for name in server.deviations:
        if name not in checks:
            what = "no experiment that it serves has this check"
            raise _unknown(["deviations", name], what, checks)
    of_harness = [
        name
        for experiment in experiments
        for name, spec in experiment.factors.items()
        if spec.of_harness
    ]
    _check_commands(server, of_harness)
    loaded = not experiments or any(experiment.client for experiment in experiments)
    _check_use(server, levels, loaded)


def with_one_title(servers: Iterable[Server]) -> tuple[Server, Server] | None:
    """Return the first two servers with the same title, for a reader; None if all differ."""
    seen: dict[str, Server] = {}
    for server in servers:
        title = " ".join(server.title.casefold().split())
        if title in seen:
            return seen[title], server
        seen[title] = server
    return None


def _check_files(server: Server, root: Path) -> None:
    bibliography = root / "paper" / "source" / "references.bib"
    sources = ["ours", *_citation_keys(bibliography, bibliography.stat().st_mtime_ns)]
    if server.source not in sources:
        raise _unknown(["source"], f"no reference has the key {server.source!r}", sources)
    for path in server.sources:
        if not _is_inside(root / path, root):
            raise Mistake(
                ["sources"], f"there is no {path[:LONGEST]} in the project",
                "name files and folders from the root, without .. and symbolic links elsewhere",
            )  # fmt: skip
    for key, file in server.packages.lists.items():
        own = OWN_NAMES[key]
        if own and file != own:
            raise Mistake(["packages", key], f"its list must be called {own}", f"name {own}")
        if Path(file).name != file or len(file) > LONGEST or "\0" in file:
            what = f"{file[:LONGEST]!r} is not the name of a file"
            raise Mistake(["packages", key], what, "the list stands in the server's own folder")
        if not _is_inside(root / "servers" / server.name / file, root):
            remedy = "servers/README.md has the command that writes it"
            raise Mistake(["packages", key], f"there is no {file} next to it", remedy)


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


def _check_factors(server: Server, levels: dict[str, list[Level]]) -> None:
    """Check the factors that it can set against those of the experiments that it serves."""
    if not server.experiments:
        return
    for factor, known in server.factors.items():
        if factor not in levels:
            what = "no experiment that it serves has this factor"
            raise _unknown(["factors", factor], what, sorted(levels))
        for level in known:
            if level not in levels[factor]:
                what = f"no experiment that it serves has the level {level!r}"
                raise _unknown(["factors", factor], what, levels[factor])


def _check_conditions(server: Server, experiment: Experiment) -> None:
    """Check that one conformance check at least applies to what the server can set."""
    checks = experiment.conformance or ()
    missing = [sorted((check.when or {}).keys() - server.factors.keys()) for check in checks]
    if checks and all(missing):
        factor = missing[0][0]
        levels = list(experiment.factors[factor].levels)
        raise Mistake(
            ["factors", factor],
            f"experiment {experiment.name!r} checks its answers by the factor {factor!r}, which "
            "the server lacks",
            f"add it under [factors] with the levels that the server knows, of {levels}",
        )


def _check_commands(server: Server, of_harness: Iterable[str]) -> None:
    """Check that each command can be filled: its braces, quotes and placeholders."""
    own = [
        key
        for configuration in server.configurations.values()
        for key in configuration.placeholders
    ]
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
            what = f"{error}; a literal brace is written twice"
            raise _unknown([key], what, known) from None
        for place in used:
            if f"{{{place}}}" not in known:
                raise _unknown([key], f"unknown placeholder {{{place}}}", known)
    if syntax := _shell_syntax(server.run):
        raise Mistake(
            ["run"],
            f"it is started without a shell, and {syntax!r} is the shell's",
            "write the commands into a script of the server's folder that ends with `exec` and the "
            'server, and start that: run = "sh {folder}/start.sh {host} {port}"; a variable is set '
            "by `env NAME=value` before the command",
        )


def _shell_syntax(command: str) -> str:
    """Return the first word that only a shell understands, outside quotes; empty if none is."""
    operators = set("();<>|&")
    for word in shlex.shlex(re.sub(r"\\.", "_", command), posix=False, punctuation_chars=True):
        if set(word) <= operators:
            return word
    for number, word in enumerate(re.findall(r"""(?:"[^"]*"|'[^']*'|\S)+""", command)):
        if re.match(r"[A-Za-z_]\w*=", word) and number == 0:
            return word
        if not word.startswith("'") and re.search(r"\$[A-Za-z_({]|^~/", word):
            return word
    return ""


def _check_use(server: Server, levels: dict[str, list[Level]], loaded: bool) -> None:
    """Check that the start command uses what it must: its address, and each factor it can set.

    A server that is not `loaded` by a client has no address.
    """
    remedies = {"host": "listen on the address {host}", "port": "listen on the port {port}"}
    needed = list(remedies) if loaded else []
    for factor, known in server.factors.items():
        # With one level there is nothing to set; schedulers may be taken from the CPUs given.
        if len(known or levels.get(factor, [])) > 1 and factor != "schedulers":
            needed.append(factor)
    used = _placeholders(server.run)
    for name in needed:
        if name not in used:
            remedy = remedies.get(name, f"use it, or take {name} out of [factors]")
            raise Mistake(["run"], f"the command does not use {{{name}}}", remedy)


def _placeholders(command: str) -> list[str]:
    """Return the names in braces; ValueError for a brace that stands alone."""
    fields = [field for field in string.Formatter().parse(command) if field[1] is not None]
    for _, name, form, conversion in fields:
        if form or conversion:
            raise ValueError(f"the placeholder {name!r} is more than a name")
    return [name for _, name, *_ in fields]


def _unknown(key: Key, what: str, known: Iterable[Level]) -> Mistake:
    return Mistake(key, what, f"known: {', '.join(map(str, dict.fromkeys(known)))}")
