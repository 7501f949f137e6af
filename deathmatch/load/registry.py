"""The load generators, by the name that an experiment gives: each a module with

`command(host, port, load, rate_rps, duration_s)`, `time_limit_s(load, duration_s)`,
`parse(report, duration_s)` with its SCHEMA (raises Truncated), `histogram(report)` with
HISTOGRAM_SCHEMA, `actual_rate_rps(fields, samples, spec)`, which is what it really offered, and
`limited(fields, offered_rate_rps, actual_rate_rps)`, whether a point shows its own limits.

A report is the text of its log, unless it has `read(log)`. One that writes more than a log has
`condense(log, keep_events)`, called when a rate was offered.
"""

import os
import shutil
import subprocess
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from types import ModuleType

from deathmatch.errors import UserError
from deathmatch.hosts import nix
from deathmatch.plan import files
from deathmatch.plan.root import ROOT

CLIENTS = ("httperf", "roundtrip", "wsload")
# Those that the build of a server makes too.
BUILT_BY = {"wsload": "ws-null"}
# The factor whose connections are held beside the load, and by which client.
IDLE_FACTOR, HOLDER = "idle_connections", "roundtrip"
# What a shell, taskset or env exits with when a program cannot be run or is not there.
NOT_RUN = (126, 127)
HELP_S = 10
SAID_LINES = 8


def load(name: str) -> ModuleType:
    """Return the client's module; only now, as polars loads slowly and a plan needs none."""
    return import_module(f"deathmatch.load.{name}")


def needed(experiment: str) -> list[str]:
    """Return the load generators that the experiment's trials run; none where all only store."""
    spec = files.experiment(experiment)
    names = [spec.client, *([HOLDER] if IDLE_FACTOR in spec.factors else [])]
    return sorted({name for name in names if name in CLIENTS})


def find(name: str) -> Path | None:
    """Return the client's program: that on PATH, else what the build of its server has made."""
    if found := shutil.which(name):
        return Path(found)
    built = built_at(name)
    return built if built and os.access(built, os.X_OK) else None


def built_at(name: str) -> Path | None:
    """Return where a server's build or Nix package has the client; None if none brings it."""
    if name not in BUILT_BY:
        return None
    server = BUILT_BY[name]
    folder = nix.package(server) if nix.chosen() else ROOT / "build" / "servers" / server
    return folder / "bin" / name


def check(experiments: Iterable[str], planned: bool = False) -> None:
    """Raise UserError if a load generator of the experiments is missing or cannot run.

    With `planned`, one that is still to be built along with a server is not missed.
    """
    wanted = {name: experiment for experiment in experiments for name in needed(experiment)}
    for name, experiment in sorted(wanted.items()):
        program = find(name)
        where = f"experiment {experiment!r}"
        if program is None:
            if planned and name in BUILT_BY:
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
            how = f"cannot run: {program} --help ended with exit status {done.returncode}"
            raise failure(name, how, done.stdout, where)


def failure(name: str, how: str, said: str, where: str) -> UserError:
    """Return the error that a load generator failed, with the last lines of what it said."""
    lines = said.strip().splitlines()[-SAID_LINES:]
    quoted = "".join(f"\n    {line}" for line in lines)
    told = f"; it said:{quoted}" if lines else ", and said nothing"
    return UserError(f"the load generator {name} {how}{told}", where, _remedy(name))


def _remedy(name: str) -> str:
    if name in BUILT_BY:
        server = BUILT_BY[name]
        return (
            f"the build of servers/{server} makes it: python -m deathmatch build {server} says "
            "what is wrong"
        )
    return (
        f"./shell builds it from clients/{name}, `nix develop` brings it along: run again in one "
        "of them"
    )


def builders(experiment: str) -> set[str]:
    """Return the servers whose builds make the experiment's client too."""
    client = files.experiment(experiment).client
    return {BUILT_BY[client]} if client in BUILT_BY else set()
