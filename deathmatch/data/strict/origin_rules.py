"""Rules about what measured: tools, machine, sources of the server, commit, version of the record.

MLPerf calls the like "system description"; SPEC's run rules ask that all of a result comes from one
configuration that a reader could have.
"""

from collections.abc import Callable, Iterable, Iterator

from deathmatch.data.strict.evidence import Evidence, Measured
from deathmatch.data.strict.rule import AGAIN, DATA, DESIGN, Seen, rule
from deathmatch.hosts import node, toolchain
from deathmatch.load import registry
from deathmatch.plan.record import MEASURED


def other_values(
    trials: list[Measured], group: Callable[[Measured], object], value: Callable[[Measured], object]
) -> Iterator[tuple[Measured, object, object]]:
    """Return each trial whose value is not that of most trials of its group, with that one.

    Groups are small; of values that as many have, the first one counts.
    """
    groups: dict[object, dict[str, list[tuple[Measured, object]]]] = {}
    for trial in trials:
        own = value(trial)
        groups.setdefault(group(trial), {}).setdefault(repr(own), []).append((trial, own))
    for values in groups.values():
        most = max(values.values(), key=len)
        for found in values.values():
            if found is not most:
                yield from ((trial, own, most[0][1]) for trial, own in found)


def _several(differences: Iterable[tuple[str, dict[str, str]]]) -> Iterator[Seen]:
    """Tell of each name that has several values where the others are than the first."""
    for name, places in differences:
        first, *others = places
        for value in others:
            yield Seen(places[value], f"{name} is {value}, and {first} elsewhere")


@rule(
    "DM-TOOLS", DATA, "reject",
    "All trials of an experiment were measured with one kernel and one build of its load "
    "generator, all of a server with one package or store path of each of its tools.",
    "measure these trials again, or keep them in a dataset of their own",
)  # fmt: skip
def one_toolchain(evidence: Evidence) -> Iterator[Seen]:
    """Look for trials of another toolchain."""
    records = [(trial.where, trial.record) for trial in evidence.readable]
    yield from _several(toolchain.differences(records))


@rule(
    "DM-TOOLS-NAMED", DATA, "reject",
    "Each record names the kernel, the load generator and the server's tools that it was measured "
    "with.",
    AGAIN,
)  # fmt: skip
def tools_are_named(evidence: Evidence) -> Iterator[Seen]:
    """Look for records that leave a tool out."""
    for trial in evidence.readable:
        tools = trial.record.get("tools", {})
        needed = {"kernel", "toolchain"}
        # One that a server's build makes was not named of old.
        client = trial.spec.get("client")
        if client and registry.client(client).built_by is None:
            needed.add(client)
        for tool in sorted(needed - tools.get("harness", {}).keys()):
            yield Seen(trial.where, f"its harness names no {tool}")
        if trial.record["outcome"] in MEASURED and not tools.get("server"):
            yield Seen(trial.where, "it names no tool of the server")


@rule(
    "DM-MACHINE", DATA, "reject",
    "All trials were measured on one kind of machine: CPU, number of CPUs, memory, system.",
    "measure these trials again, or keep them in a dataset of their own",
)  # fmt: skip
def one_machine(evidence: Evidence) -> Iterator[Seen]:
    """Look for trials of another machine."""
    records = [(trial.where, trial.record) for trial in evidence.readable]
    yield from _several(node.differences(records))


@rule(
    "DM-MACHINE-NAMED", DATA, "reject",
    "Each record of a measured trial says on which machine, kernel and system.", AGAIN,
)  # fmt: skip
def machine_is_named(evidence: Evidence) -> Iterator[Seen]:
    """Look for records that do not say where."""
    for trial in evidence.readable:
        machine = trial.record.get("machine") or {}
        lacking = [key for key in ("cpu", "cpus", "memory_bytes", "kernel", "os")
                   if not machine.get(key)]  # fmt: skip
        if lacking and trial.record["outcome"] in MEASURED:
            yield Seen(trial.where, f"machine lacks {', '.join(lacking)}")


@rule(
    "DM-COMMIT", DATA, "reject",
    "Each trial was measured by a commit of this project without changes beside it.",
    "commit, and measure again; or waive it in the dataset's file, with the reason",
)  # fmt: skip
def commit_is_clean(evidence: Evidence) -> Iterator[Seen]:
    """Look for trials of code that nobody can fetch."""
    for trial in evidence.readable:
        if trial.record["outcome"] not in MEASURED:
            continue
        commit = (trial.record.get("machine") or {}).get("commit") or ""
        if not commit or commit.endswith("-dirty"):
            yield Seen(trial.where, f"commit {commit or 'unknown'}")


@rule(
    "DM-COMMITS", DATA, "note",
    "One commit measured all trials.",
    "say in the dataset's remark what changed between them",
)  # fmt: skip
def one_commit(evidence: Evidence) -> Iterator[Seen]:
    """Tell how many commits measured."""
    found: dict[str, int] = {}
    for trial in evidence.readable:
        commit = ((trial.record.get("machine") or {}).get("commit") or "").removesuffix("-dirty")
        if commit:
            found[commit] = found.get(commit, 0) + 1
    if len(found) > 1:
        each = ", ".join(f"{commit} ({count})" for commit, count in found.items())
        yield Seen(evidence.named, f"{len(found)} commits, with their trials: {each}")


@rule(
    "DM-SCHEMA", DATA, "reject",
    "All records have one version of their schema.",
    "measure the older ones again",
)  # fmt: skip
def one_schema(evidence: Evidence) -> Iterator[Seen]:
    """Look for records of an earlier or later version of this project than the others."""
    trials = evidence.readable
    for trial, own, most in other_values(trials, lambda _: "", lambda one: one.schema_version):
        yield Seen(trial.where, f"version {own}, elsewhere {most}")


@rule(
    "DM-SERVER", DESIGN, "reject",
    "All trials of a server ran the same sources and say the same version.",
    "measure all trials of this server again",
)  # fmt: skip
def one_version_of_a_server(evidence: Evidence) -> Iterator[Seen]:
    """Look for trials of another server than the others of its name."""
    trials = [trial for trial in evidence.readable if trial.record["outcome"] in MEASURED]
    for what, value in (
        ("sources", lambda trial: trial.spec["server_sha256"]),
        ("version", lambda trial: trial.record["version"]),
    ):
        for trial, own, most in other_values(trials, lambda trial: trial.key[1], value):
            yield Seen(trial.where, f"its {what} are {own!r}, and {most!r} in other trials")


RULES = (
    one_toolchain, tools_are_named, one_machine, machine_is_named, commit_is_clean, one_commit,
    one_schema, one_version_of_a_server,
)  # fmt: skip
