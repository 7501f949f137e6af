"""What a card says of a server's connections: memory, listen queue, readiness, system calls.

In: an experiment of the card's dataset, the records of the server's trials, and its file. Out: a
name and a sentence each. What was not measured says how to measure it.
"""

from collections.abc import Mapping, Sequence

import polars as pl

from deathmatch.analysis import phrases
from deathmatch.analysis.views import Experiment
from deathmatch.errors import as_typed
from deathmatch.load import registry
from deathmatch.plan import files, matrix
from deathmatch.plan.server import Server
from deathmatch.quantities.definitions import MEMORY_PER_CONNECTION
from deathmatch.quantities.quantity import RATE

WAITS = "waits with "
"""How the conformance check of a readiness mechanism begins (`measure.conformance`)."""

DATASETS = ("smoke", "quick", "tour", "full")
"""The datasets that measure other people's servers, the shortest first; the last has them all."""


def facts(held: Experiment, records: Sequence[Mapping], server: Server) -> list[tuple[str, str]]:
    """Return the facts of one server, in the order of the card."""
    trials, points, samples = (
        frame.filter(pl.col("server") == server.name)
        for frame in (held.trials, held.points, held.samples)
    )
    return [
        ("Memory per idle connection", _memory(points, server)),
        ("Listen backlog", _backlog(trials, points, samples)),
        ("Readiness mechanism", _readiness(records, server)),
        ("System calls per reply", _system_calls(trials, server)),
        ("Connections held at once", _held(points)),
    ]


def _memory(points: pl.DataFrame, server: Server) -> str:
    measured = MEMORY_PER_CONNECTION.of_trial(points)
    if measured is not None:
        return f"{measured:.3g} {MEMORY_PER_CONNECTION.unit}, of its resident set"
    holding = [
        name for name in files.names("experiment") if files.experiment(name).client == "wsload"
    ]
    return _unmeasured(server, holding)


def _backlog(trials: pl.DataFrame, points: pl.DataFrame, samples: pl.DataFrame) -> str:
    asked = trials["backlog"].max() if "backlog" in trials.columns else None
    granted = samples["accept_queue_limit"].max()
    said = "the experiment sets none" if asked is None else f"requested {phrases.number(asked)}"
    said += (
        ", the kernel's was not read" if granted is None
        else f", the kernel has {phrases.number(granted)}"
    )  # fmt: skip
    if points.is_empty():
        return said
    highest = points.filter(pl.col(RATE) == pl.col(RATE).max())
    overflows = highest["server_listen_overflows"].median()
    longest = points["accept_queue_connections_max"].max()
    if overflows is not None:
        said += f"; {phrases.number(overflows)} overflows at the highest rate"
    return said if longest is None else f"{said}; at most {phrases.number(longest)} waited"


def _readiness(records: Sequence[Mapping], server: Server) -> str:
    checks = [
        check
        for record in records
        for check in record.get("conformance") or []
        if check["name"].startswith(WAITS)
    ]
    for check in checks:
        mechanism = check["name"].removeprefix(WAITS)
        seen = "seen in its idle threads" if check["ok"] else f"but {check['seen']}"
        return f"{mechanism}, {seen}"
    if "readiness" not in server.factors:
        return (
            'not measured: add a line such as readiness = ["epoll"] below [factors] of server.toml '
            "to check it"
        )
    return _unmeasured(server, _with_factor("readiness"))


def _system_calls(trials: pl.DataFrame, server: Server) -> str:
    counted = trials["syscalls_per_reply"].drop_nulls()
    if len(counted):
        waits = trials["waits_per_reply"].drop_nulls().median()
        return f"{counted.median():.3g}, {waits:.3g} of them waits"
    counting = [
        name
        for name in files.names("experiment")
        if files.experiment(name).system_calls_rate_rps is not None
    ]
    return _unmeasured(server, counting)


def _held(points: pl.DataFrame) -> str:
    columns = [
        name for name in ("concurrent_connections", "server_established_max", "idle_held")
        if name in points.columns
    ]  # fmt: skip
    most = max((points[name].max() or 0 for name in columns), default=0)
    return f"{phrases.number(most)} at most" if most else "not measured"


def _with_factor(factor: str) -> list[str]:
    return [name for name in files.names("experiment") if factor in files.experiment(name).factors]


def _unmeasured(server: Server, experiments: Sequence[str]) -> str:
    """Return how to measure what only these experiments measure."""
    own = [name for name in experiments if name in server.experiments]
    if not own:
        named = " or ".join(experiments)
        return f"not measured: only {named} measures it; add it to experiments in server.toml"
    client = files.experiment(own[0]).client
    if client and registry.client(client).searches:
        command = f"deathmatch measure {server.name} --experiment {own[0]}"
    else:
        dataset = next(name for name in DATASETS if matrix.trials(name, [server.name], [own[0]]))
        chosen = f"dataset={dataset} servers={server.name} experiments={own[0]}"
        command = f"snakemake --config {chosen}"
    return f"not measured here; to measure it: {as_typed(command)}"
