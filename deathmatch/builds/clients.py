"""The load generators on this machine: which an experiment needs, where they are, whether they run.

`load.registry` describes each of them.
"""

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from deathmatch.builds import nix
from deathmatch.errors import UserError
from deathmatch.load import registry
from deathmatch.load.generator import PROJECT
from deathmatch.plan import files
from deathmatch.plan.paths import ROOT
from deathmatch.plan.trial import Trial

# The exit statuses of a shell or of env when a program cannot be run or is missing.
NOT_RUN = (126, 127)
# No server can cause this end of a client: a user killed it, or the kernel for want of memory.
KILLED = -signal.SIGKILL
HELP_S = 10
QUOTED_LINES = 8


def needed(experiment: str, load_generator: str | None = None) -> list[str]:
    """Return the load generators that the experiment's trials run; none if they have no load.

    `load_generator` is that of one trial; default: the experiment's.
    """
    spec = files.experiment(experiment)
    names = {load_generator or spec.client} - {None}
    if registry.IDLE_FACTOR in spec.factors:
        names.add(registry.HOLDER)
    return sorted(names)


def of_trial(trial: Trial) -> tuple[list[str], str]:
    """Return the load generators of a trial, and the name of what needs them for messages."""
    name = trial.experiment.name
    return needed(name, trial.load_generator), f"experiment {name!r}"


def builders(experiment: str) -> set[str]:
    """Return the servers whose builds also make the experiment's load generators."""
    built_by = {registry.client(name).built_by for name in needed(experiment)}
    return {server for server in built_by if server}


def find(name: str) -> Path | None:
    """Return the program: the one on PATH, else the one that its server's build has made."""
    if on_path := shutil.which(registry.client(name).program):
        return Path(on_path)
    built = built_at(name)
    return built if built and os.access(built, os.X_OK) else None


def built_at(name: str) -> Path | None:
    """Return where a server's build or Nix package has the program; None if no server has it."""
    client = registry.client(name)
    if not client.built_by:
        return None
    built = ROOT / "build" / "servers" / client.built_by
    return (nix.package(client.built_by) if nix.chosen() else built) / "bin" / client.program


def located(words: list[str]) -> list[str]:
    """Return a load generator's command, its first word the program's path on this machine.

    A program on PATH keeps its bare name, and so does a missing one. Paths of the project in the
    other words become paths of this clone.
    """
    program = words[0]
    if not shutil.which(program):
        name = next(name for name in registry.CLIENTS if registry.client(name).program == program)
        program = str(find(name) or program)
    return [program, *(word.replace(PROJECT, str(ROOT)) for word in words[1:])]


def version(name: str) -> str:
    """Return the first line that the version command prints; empty if it cannot be run."""
    words = located(shlex.split(registry.client(name).version))
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=HELP_S,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return next(iter(done.stdout.splitlines()), "")


def check_programs(wanted: Mapping[str, str], planned: bool = False) -> None:
    """Raise UserError if a load generator is missing or cannot run.

    `wanted` maps its name to what needs it. With `planned`, a program that a server's build will
    make may be missing.
    """
    for name, where in sorted(wanted.items()):
        program = find(name)
        if program is None:
            if planned and registry.client(name).built_by:
                continue
            raise UserError(f"the load generator {name} is missing", where, _remedy(name))
        try:
            done = subprocess.run(
                [program, "--help"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, errors="replace", timeout=HELP_S,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise failure(name, f"cannot run: {error}", "", where) from None
        if done.returncode != 0:
            problem = f"cannot run: {program} --help ended with exit status {done.returncode}"
            raise failure(name, problem, done.stdout, where)


def failure(name: str, problem: str, output: str, where: str) -> UserError:
    """Return the error that a load generator failed, with the last lines of its output."""
    lines = output.strip().splitlines()[-QUOTED_LINES:]
    quoted = "".join(f"\n    {line}" for line in lines)
    output = f"; it said:{quoted}" if lines else ", and said nothing"
    return UserError(f"the load generator {name} {problem}{output}", where, _remedy(name))


def _remedy(name: str) -> str:
    if server := registry.client(name).built_by:
        return (
            f"the build of servers/{server} makes it; ./shell deathmatch build {server} shows "
            "what is wrong"
        )
    return (
        f"./shell builds it from clients/{name}, and `nix develop` includes it: run again in one "
        "of them"
    )
